// The lifecycle of one instance: starting, running, draining, gone. Readable from top to bottom.
// Must not know where it runs, detached or not, nor who asked for it.
import type { Config } from '../shared/config.ts';
import { findLapses, renewCredentials } from '../shared/credentials.ts';
import { type ExitCode, exitCodes } from '../shared/exit-codes.ts';
import { formatListenAddress } from '../shared/listen-address.ts';
import type { OwnedLog } from '../shared/log.ts';
import type { LogDestination } from '../shared/messages.ts';
import { type Claim, instanceOf, type Phase } from './claim.ts';
import { type Crew, createCrew } from './crew.ts';
import { type Listener, removeSocketName } from './listener.ts';
import { prepareForks } from './member.ts';
import { ownMarks } from './orphans.ts';
import { publishPidfile } from './pidfile.ts';

/** What an instance is run with; all of it is given up when it ends. */
export type Instance = {
  readonly config: Config;
  readonly claim: Claim;
  readonly listener: Listener;
  readonly log: OwnedLog;
  readonly logTo: LogDestination;
  /** Called once, when every worker listens. */
  readonly onRunning: () => void;
};

/** A running lifecycle. */
export type Supervision = {
  /** The exit status, when everything has ended and the pidfile is gone. */
  readonly ended: Promise<ExitCode>;
  /** Drains; asked a second time, or before the instance runs, stops at once. */
  readonly stop: () => void;
  /** Opens the log files anew, and reads certificates, keys, password and tokens anew, for all workers. */
  readonly renew: () => void;
};

// Less than the launcher's own bound, so that the reason is told here, where it is known.
const bootBoundMs = 14_000;
const drainMarginMs = 2000;

/** Starts the lifecycle. */
export function supervise(instance: Instance): Supervision {
  const { config, claim, log, logTo, listener } = instance;
  const drainBoundMs = Math.max(config.drainTimeoutMs, config.statementTimeoutMs) + drainMarginMs;
  let phase: Phase['kind'] = 'starting';
  claim.answerBy(() =>
    phase === 'draining' ? { kind: phase, boundMs: drainBoundMs } : { kind: phase },
  );
  prepareForks(listener.fd, logTo);
  const marks = ownMarks(instanceOf(config.pidfile, process.getuid?.() ?? 0));
  const crew = createCrew({ config, log, logTo, marks }, log.lost);
  let current = config;
  let stopRequests = 0;
  let onStop = () => {};
  const stopAsked = new Promise<void>((resolve) => {
    onStop = resolve;
  });

  const run = async (): Promise<ExitCode> => {
    const pidfile = publish(config.pidfile, log);
    if (pidfile === null) return exitCodes.cannotCreate;
    try {
      const exitCode = await boot(crew, stopAsked, log);
      if (exitCode !== null) {
        phase = 'draining';
        listener.close();
        crew.kill();
        await crew.gone();
        return exitCode;
      }
      phase = 'running';
      log.info(`listening ${formatListenAddress(listener.address)}`);
      // Whoever is told that it runs may look into the log at once.
      log.flush();
      instance.onRunning();

      await stopAsked;
      phase = 'draining';
      log.info('draining');
      listener.close();
      await drain(crew, drainBoundMs, () => stopRequests, log);
      log.info('stopped');
      return exitCodes.ok;
    } finally {
      removeSocketName(listener.address);
      pidfile.release();
    }
  };

  return {
    ended: run(),
    stop: () => {
      stopRequests += 1;
      onStop();
      if (stopRequests > 1) crew.kill();
    },
    renew: () => {
      log.reopen();
      crew.reopenLogs();
      current = renew(current, crew, log);
    },
  };
}

function publish(path: string, log: OwnedLog) {
  try {
    return publishPidfile(path);
  } catch (error) {
    log.error('cannot create the pidfile', { path, reason: (error as Error).message });
    return null;
  }
}

/** The settings with what was read anew; what is faulty stays as it was. */
function renew(config: Config, crew: Crew, log: OwnedLog): Config {
  const { credentials, faults } = renewCredentials(config);
  for (const { key, problem } of faults) {
    log.error('a file cannot be used: what it held before stays in use', { key, problem });
  }
  for (const { key, problem } of findLapses(credentials))
    log.warn('a certificate', { key, problem });
  crew.renew(credentials);
  const files = Object.values(config.credentialFiles).filter((file) => file !== null).length;
  log.info('log files opened anew, credentials read anew', { files, faults: faults.length });
  return Object.freeze({ ...config, ...credentials });
}

/** Null when every worker listens; else the exit status, its reason logged. */
async function boot(crew: Crew, stopAsked: Promise<void>, log: OwnedLog): Promise<ExitCode | null> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), bootBoundMs);
  });
  const result = await Promise.race([crew.boot(), bound, stopAsked]);
  clearTimeout(timer);
  if (result === undefined || result === 'late') {
    const reason = result === 'late' ? 'not every worker listened in time' : 'told to stop';
    log.error('the start was given up', { reason });
    return exitCodes.unavailable;
  }
  if (result.kind === 'listening') return null;
  log.error('the start failed', { reason: result.reason });
  return result.exitCode;
}

async function drain(crew: Crew, boundMs: number, stopRequests: () => number, log: OwnedLog) {
  const gone = crew.gone();
  if (stopRequests() > 1) crew.kill();
  else crew.drain();
  const timer = setTimeout(() => {
    log.error('workers did not finish in time and are ended', { bound_ms: boundMs });
    crew.kill();
  }, boundMs);
  await gone;
  clearTimeout(timer);
}

// The lifecycle of one instance, from top to bottom: starting, running, leaving, draining.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { formatListenAddress } from '../shared/config/addresses.ts';
import type { Sections } from '../shared/config/config.ts';
import type { NamedBySection } from '../shared/named/load-sections.ts';
import { readBuild } from '../shared/process/build.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import type { OwnedLog } from '../shared/process/log.ts';
import type { LogDestination } from '../shared/process/messages.ts';
import { removeStaleWorkerSockets } from '../shared/process/socket-paths.ts';
import { acquireDrainLock, type Claim, instanceOf } from './claim/claim.ts';
import { ownMarks } from './claim/orphans.ts';
import {
  type Phase as HolderPhase,
  openPhaseSocket,
  type PhaseSocket,
} from './claim/phase-socket.ts';
import { publishPidfile } from './claim/pidfile.ts';
import { type Listener, rememberSocketName } from './listener/listener.ts';
import { watchDirectories } from './named-watch.ts';
import { ExpiryWatch } from './observe/expiry-watch.ts';
import { obeyOrder } from './primary/primary-order.ts';
import { Renewal } from './renewal.ts';
import { type Supervision, supervisorHeapLimits } from './supervisor-process.ts';
import { openCommitMemory } from './workers/commit-memory.ts';
import { prepareForks } from './workers/worker-process.ts';
import { hardStopMs, Workers } from './workers/workers.ts';

/** The resources of an instance. It releases all of them at its end. */
export type Instance = {
  readonly sections: Sections;
  readonly named: NamedBySection;
  readonly claim: Claim;
  readonly listener: Listener;
  readonly log: OwnedLog;
  readonly logTo: LogDestination;
  /** The longest time until the workers listen. */
  readonly bootBoundMs: number;
  /** Called once, when every worker listens. */
  readonly onRunning: () => void;
};

const drainMarginMs = 2000;

/**
 * starting: not every worker listens yet. running: every worker has listened. leaving: listeners close, and the claim is kept until
 * all have. draining: the claim is free for a successor, and requests in flight finish. Phases only go forward.
 */
type Phase = 'starting' | 'running' | 'leaving' | 'draining';

/** Creates the lifecycle of an instance. Nothing happens before `run`. */
export function supervise(instance: Instance): Supervision {
  const { sections, named, log, logTo, listener } = instance;
  const [{ pidfile, drainTimeoutMs }] = sections;
  const longestMs = Math.max(...sections.map((section) => section.statementTimeoutMs));
  const drainBoundMs = Math.max(drainTimeoutMs, longestMs) + drainMarginMs;
  prepareForks(listener.fd, logTo, supervisorHeapLimits);
  const marks = ownMarks(instanceOf(pidfile));
  removeStaleWorkerSockets(pidfile);
  const making = {
    sections,
    named,
    log,
    logTo,
    marks,
    socketStays: listener.outlives,
    build: readBuild(),
    commits: openCommitMemory(pidfile, (error) => warnOfForgetting(error, log)),
  };
  const expiries = new ExpiryWatch(sections, log);
  let namedInForce = named;
  const renewal = new Renewal(sections, log, (renewed) => {
    namedInForce = renewed.named ?? namedInForce;
    workers.renew(renewed);
  });
  const workers = new Workers(making, {
    logLinesLost: log.lost,
    certificates: () => expiries.certificates(),
    expiringClients: () => expiries.clients(),
    renewedKeys: () => listRenewedKeys(sections),
    fileFaults: () => renewal.faults(),
    named: () => namedInForce,
    rereadKeys: () => renewal.keys(),
  });
  const watches = watchDirectories(sections, log, () => {
    if (phase === 'starting' || phase === 'running') renewal.named();
  });
  void workers.gone.then(() => {
    expiries.close();
    watches.close();
  });
  const stopping = createStop(workers);
  let phase: Phase = 'starting';
  const configAtStart = digestOf(sections[0].configPath);

  const run = async (): Promise<ExitCode> => {
    expiries.look(sections);
    const obey = (order: string) =>
      obeyOrder(order, renewal.sections, (section, primary) =>
        workers.overridePrimary(section, primary),
      );
    const names = await publishNames(instance, () => phase, drainBoundMs, obey);
    if (names === null) return exitCodes.cannotCreate;
    const enter = (next: Phase) => {
      phase = next;
      if (next === 'leaving') listener.close();
      if (next === 'draining') names.release();
    };

    const failure = await boot(instance, workers, stopping.asked);
    if (failure !== null) {
      enter('leaving');
      workers.kill();
      await workers.gone;
      enter('draining');
      return failure;
    }
    enter('running');
    log.info(`listening ${formatListenAddress(listener.address)}`);
    // A caller that learns that it runs may read the log at once.
    log.flush();
    instance.onRunning();

    await stopping.asked;
    enter('leaving');
    log.info('draining');
    const timer = setTimeout(() => {
      log.error('workers did not finish in time and are ended', { bound_ms: drainBoundMs });
      workers.stopNow();
    }, drainBoundMs - hardStopMs);
    await Promise.race([workers.drain(), workers.gone]);
    await Promise.race([
      waitForDrainLock(pidfile, marks.DBHTTPD_SUPERVISOR, workers, log),
      workers.gone,
    ]);
    enter('draining');
    log.info('the claim is free for a successor');
    await workers.gone;
    clearTimeout(timer);
    log.info('stopped', { pid: process.pid, ...workers.unseen() });
    return exitCodes.ok;
  };

  return {
    run,
    stop: stopping.ask,
    renew: () => {
      // A leaving instance ignores it, because the pidfile names the successor.
      if (phase !== 'starting' && phase !== 'running') return;
      log.reopen();
      workers.reopenLogs();
      renewal.all();
      expiries.look(renewal.sections);
      const { configPath } = sections[0];
      if (digestOf(configPath) === configAtStart) return;
      log.warn('the configuration file has changed: it is read at a start only', {
        path: configPath,
      });
    },
  };
}

function warnOfForgetting(error: unknown, log: OwnedLog): void {
  log.warn('the outcome of COMMITs is not remembered beyond this instance', {
    error: error instanceof Error ? error.message : String(error),
  });
}

/** The first request to stop resolves `asked`. The second has all workers kill what they run and exit at once. */
function createStop(workers: Workers): { readonly asked: Promise<void>; readonly ask: () => void } {
  let requests = 0;
  let resolveAsked = () => {};
  const asked = new Promise<void>((resolve) => {
    resolveAsked = resolve;
  });
  const ask = () => {
    requests += 1;
    resolveAsked();
    if (requests > 1) workers.stopNow();
  };
  return { asked, ask };
}

/** A digest of a file's content. Null: it cannot be read. */
function digestOf(path: string): string | null {
  try {
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch {
    return null;
  }
}

/** Publishes the names by which other processes find the instance. Null: they cannot be created, and the reason is logged. */
async function publishNames(
  { sections: [config], claim, listener, log }: Instance,
  phase: () => Phase,
  boundMs: number,
  obey: (order: string) => Promise<string | null>,
): Promise<{ readonly release: () => void } | null> {
  const removeSocketName = rememberSocketName(listener);
  const currentPhase = (): HolderPhase => {
    const kind = phase();
    return kind === 'starting' || kind === 'running' ? { kind } : { kind: 'leaving', boundMs };
  };
  let socket: PhaseSocket | null = null;
  try {
    const answering = await openPhaseSocket(config.pidfile, currentPhase, obey);
    socket = answering;
    const pidfile = publishPidfile(config.pidfile);
    return {
      // In this order, a successor that gets the claim finds none of these names, and this process removes none of the successor's.
      release: () => {
        removeSocketName();
        pidfile.release();
        answering.close();
        claim.close();
        answering.dismiss();
      },
    };
  } catch (error) {
    const { message } = error as Error;
    log.error('cannot create the pidfile', { path: config.pidfile, reason: message });
    socket?.close();
    removeSocketName();
    // Released before the failure is reported, because another start may follow at once.
    listener.close();
    claim.close();
    return null;
  }
}

/** Null: every worker listens. Otherwise the exit status, and the reason is logged. */
async function boot(
  { log, bootBoundMs }: Instance,
  workers: Workers,
  stopAsked: Promise<void>,
): Promise<ExitCode | null> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), bootBoundMs);
  });
  const result = await Promise.race([workers.boot(), bound, stopAsked]);
  clearTimeout(timer);
  if (result === undefined || result === 'late') {
    const reason = result === 'late' ? 'not every worker listened in time' : 'stop requested';
    log.error('the start was given up', { reason });
    return exitCodes.unavailable;
  }
  if (result.kind === 'listening') return null;
  log.error('the start failed', { reason: result.reason });
  return result.exitCode;
}

/** Resolves when no older instance drains. */
async function waitForDrainLock(
  pidfile: string,
  supervisor: string,
  workers: Workers,
  log: OwnedLog,
): Promise<void> {
  let isOver = false;
  void workers.gone.then(() => {
    isOver = true;
  });
  try {
    await acquireDrainLock(
      pidfile,
      supervisor,
      () => isOver,
      (older) => {
        const [pid = ''] = older.split(':');
        log.info('the claim is kept while an older instance drains', { pid });
      },
    );
  } catch (error) {
    // Without the lock, two instances could drain at once, so the successor waits for this one's end.
    log.warn('the claim is kept while draining', { reason: (error as Error).message });
    await workers.gone;
  }
}

/** The keys that name files which are read again, as far as they are set. */
function listRenewedKeys(sections: Sections): readonly string[] {
  const paths = sections.flatMap(({ credentialFiles, named }) =>
    Object.entries({ ...credentialFiles, named }),
  );
  return [...new Set(paths.flatMap(([key, path]) => (path === null ? [] : [key])))];
}

// The preparation of a start: settings, log, claim, orphans, socket. For launch and foreground.
import { dirname } from 'node:path';
import { formatListenAddress, isLocal } from '../shared/config/addresses.ts';
import type { Config, Sections } from '../shared/config/config.ts';
import {
  type Environment,
  formatFault,
  loadConfig,
  type Target,
} from '../shared/config/load-config.ts';
import {
  currentPlace,
  fallbackLog,
  makeDefaultDirectory,
  type Place,
} from '../shared/config/machine-defaults.ts';
import {
  findNamedFaults,
  type NamedBySection,
  parseDirectories,
  statementsOf,
} from '../shared/named/load-sections.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import { type Log, type LogTarget, type OwnedLog, openLog } from '../shared/process/log.ts';
import type { LogDestination } from '../shared/process/messages.ts';
import { type Claim, claimInstance } from './claim/claim.ts';
import { endOrphans } from './claim/orphans.ts';
import { readPidfile } from './claim/pidfile.ts';
import { adoptListener } from './listener/activation.ts';
import { type Bound, bindListener, type Listener } from './listener/listener.ts';

/** The parts for a start, or the exit status of a failed one, whose reason is logged. */
export type Prepared =
  | {
      readonly ok: true;
      readonly sections: Sections;
      readonly named: NamedBySection;
      readonly log: OwnedLog;
      readonly claim: Claim;
      readonly listener: Listener;
      /** The time that is left for the start, which is limited from the claim on. */
      readonly remainingMs: () => number;
    }
  | { readonly ok: false; readonly exitCode: ExitCode };

/** The environment without secrets, for processes that get them by message. */
export function withoutSecrets(env: Environment): Record<string, string | undefined> {
  const { DBHTTPD_PASSWORD: _password, DBHTTPD_TOKEN: _token, ...rest } = env;
  return rest;
}

const startBoundMs = 15_000;

const failed = (exitCode: ExitCode): Prepared => ({ ok: false, exitCode });

/**
 * Reads, opens, claims and binds, in this order. Of several simultaneous starts, only one gets the claim.
 * @param activation the number of inherited sockets, which replace `listen`
 */
export async function prepare(
  target: Target,
  env: Environment,
  activation: string | null,
  logTo: LogDestination,
): Promise<Prepared> {
  const place = currentPlace();
  const loaded = loadConfig(target, env, place);
  const fallback = (): LogTarget => (logTo === 'stderr' ? logTo : { path: fallbackLog(place) });
  const complain = (first: readonly LogTarget[], ...lines: readonly string[]) =>
    writeToFirst([...first, fallback()], lines, place);
  if (loaded.kind === 'unreadable') {
    complain([], loaded.reason);
    return failed(exitCodes.configUnreadable);
  }
  if (loaded.kind === 'invalid') {
    const own = loaded.log === null || logTo === 'stderr' ? [] : [{ path: loaded.log }];
    complain(own, ...loaded.faults.map(formatFault));
    return failed(exitCodes.configInvalid);
  }
  let { sections } = loaded;
  const directories = parseDirectories(sections);
  const faults = findNamedFaults(directories, sections[0].access?.clients ?? null);
  if (faults.length > 0) {
    const own = logTo === 'stderr' ? [] : [{ path: sections[0].log }];
    complain(own, ...faults.map((fault) => formatFault({ ...fault, section: null, key: null })));
    return failed(exitCodes.configInvalid);
  }
  const [config, ...others] = sections;
  let log: OwnedLog;
  try {
    if (logTo === 'file') makeDefaultDirectory(dirname(config.log), place);
    log = openLog(
      logTo === 'stderr' ? logTo : { path: config.log },
      config.logLevel,
      `${process.pid}`,
      'at once',
    );
  } catch (error) {
    complain([], `cannot create the log: ${(error as Error).message}`);
    return failed(exitCodes.cannotCreate);
  }
  const claimed = await claim(config, place, log);
  if (!claimed.ok) return failed(claimed.exitCode);
  const deadline = performance.now() + startBoundMs;
  await clearOrphans(config, log);
  const listener = activation === null ? await listen(config, log) : adopt(activation, config, log);
  if (typeof listener === 'number') return failed(listener);
  sections = [Object.freeze({ ...config, listen: listener.address }), ...others];
  const remainingMs = () => Math.max(0, deadline - performance.now());
  const named = statementsOf(directories);
  return { ok: true, sections, named, log, claim: claimed.claim, listener, remainingMs };
}

/** Writes lines to the first log that accepts them. If none does, the exit status is the only report. */
function writeToFirst(targets: readonly LogTarget[], lines: readonly string[], place: Place): void {
  for (const target of targets) {
    try {
      if (target !== 'stderr') makeDefaultDirectory(dirname(target.path), place);
      const log = openLog(target, 'error', `${process.pid}`, 'at once');
      for (const line of lines) log.error(line);
      return;
    } catch {
      // Try the next one.
    }
  }
}

type ClaimResult =
  | { readonly ok: true; readonly claim: Claim }
  | { readonly ok: false; readonly exitCode: ExitCode };

async function claim({ pidfile }: Config, place: Place, log: Log): Promise<ClaimResult> {
  try {
    makeDefaultDirectory(dirname(pidfile), place);
    const claimed = await claimInstance(pidfile);
    if (claimed.kind === 'held') return { ok: true, claim: claimed.claim };
    const pid = readPidfile(pidfile);
    log.error('this instance cannot be started', {
      reason: claimed.reason,
      ...(pid === null ? {} : { pid }),
      pidfile,
    });
    return { ok: false, exitCode: exitCodes.alreadyRunning };
  } catch (error) {
    log.error('cannot create the pidfile', { path: pidfile, reason: (error as Error).message });
    return { ok: false, exitCode: exitCodes.cannotCreate };
  }
}

/** Workers of a killed supervisor may still hold the address and database connections. */
async function clearOrphans({ pidfile }: Config, log: Log): Promise<void> {
  const ended = await endOrphans(pidfile);
  if (ended.length > 0) log.warn('ended orphaned workers', { pids: ended.join(',') });
}

async function listen(config: Config, log: Log): Promise<Listener | ExitCode> {
  const bound: Bound = await bindListener(config.listen, config.listenMode);
  if (bound.ok) return bound.listener;
  const address = formatListenAddress(config.listen);
  log.error('cannot listen', { address, reason: bound.reason });
  return exitCodes.unavailable;
}

/** The service manager chose the socket's address, but the access rules were checked for the address in `listen`. */
function adopt(activation: string, config: Config, log: Log): Listener | ExitCode {
  const adopted = adoptListener(activation);
  if (!adopted.ok) {
    log.error('cannot serve the inherited socket', { reason: adopted.reason });
    return exitCodes.unavailable;
  }
  const { listener } = adopted;
  const address = formatListenAddress(listener.address);
  if (isLocal(config.listen) && !isLocal(listener.address)) {
    const reason = 'it is beyond loopback, and `listen` is not: name its address there';
    log.error('cannot serve the inherited socket', { address, reason });
    return exitCodes.configInvalid;
  }
  log.info('serves an inherited socket: `listen` is not bound', { address });
  return listener;
}

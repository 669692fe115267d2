// Defaults that the machine decides: the directories of pidfile, log and state, and the number of processors.
import {
  accessSync,
  chmodSync,
  constants,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The user and the directories that the defaults depend on. A test passes its own. */
export type Place = {
  readonly uid: number;
  /** Empty: the user has none. */
  readonly home: string;
  readonly temporary: string;
  readonly isDirectory: (path: string) => boolean;
  readonly mayWrite: (path: string) => boolean;
};

/** This process's place. */
export function currentPlace(): Place {
  return {
    uid: process.getuid?.() ?? 0,
    home: findHome(),
    temporary: tmpdir(),
    isDirectory,
    mayWrite,
  };
}

function findHome(): string {
  try {
    return homedir();
  } catch {
    // The user has no entry in the table of users, and no HOME.
    return '';
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // It is missing, or this user may not see it: it cannot be used either way.
    return false;
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The directory of pidfiles. */
export function runDirectory(place: Place): string {
  if (place.uid === 0) return '/run';
  const own = `/run/user/${place.uid}`;
  return place.isDirectory(own) ? own : ownDirectory(place);
}

/** The directory of logs. */
export function logDirectory(place: Place): string {
  return place.uid === 0 && place.isDirectory('/var/log') ? '/var/log' : ownDirectory(place);
}

/** The directory of files that must survive a reboot. A user without a home has only a temporary one, which may not. */
export function stateDirectory(place: Place): string {
  return place.uid === 0 ? '/var/lib/dbhttpd' : ownDirectory(place);
}

/** The user's own directory if the system has none: below the home, or else a private temporary one. */
function ownDirectory(place: Place): string {
  const state = join(place.home, '.local/state/dbhttpd');
  const isUsable = place.uid !== 0 && place.isDirectory(place.home) && canHold(place, state);
  return isUsable ? state : join(place.temporary, `dbhttpd-${place.uid}`);
}

function canHold(place: Place, directory: string): boolean {
  if (place.isDirectory(directory)) return place.mayWrite(directory);
  return canHold(place, dirname(directory));
}

const othersWrite = 0o022;

/**
 * Makes the user's own directory of default paths. Leaves other directories as they are.
 * @throws if another user has put something there
 */
export function makeDefaultDirectory(directory: string, place: Place): void {
  if (directory !== ownDirectory(place)) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const stats = lstatSync(directory);
  if (!stats.isDirectory()) throw new Error(`${directory} is not a directory`);
  if (stats.uid !== place.uid) throw new Error(`${directory} belongs to another user`);
  if ((stats.mode & othersWrite) !== 0) chmodSync(directory, 0o700);
}

/**
 * Makes the state directory if it is missing, with rights for its user only.
 * @throws if it cannot be made, or another user may write to it
 */
export function makeStateDirectory(directory: string, place: Place): void {
  makeDefaultDirectory(directory, place);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const { uid, mode } = statSync(directory);
  if (uid !== 0 && uid !== place.uid) throw new Error(`${directory} belongs to another user`);
  const isSticky = (mode & 0o1000) !== 0;
  if ((mode & othersWrite) !== 0 && !isSticky) throw new Error(`others may write to ${directory}`);
}

/** The log for failures before a section's own log is known. */
export function fallbackLog(place: Place): string {
  return join(logDirectory(place), 'dbhttpd.log');
}

/** The number of processors that this process may use, by cores, affinity and cgroup quota. At least 1; a quota of 1.5 counts as 2. */
export function processorCount(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(Math.min(quotaV2(), quotaV1()))));
}

/** cgroup v2: the smallest quota of this process's group and the groups above it. */
function quotaV2(): number {
  const own = /^0::(.*)$/m.exec(readText('/proc/self/cgroup') ?? '')?.[1] ?? '/';
  let quota = Number.POSITIVE_INFINITY;
  for (let group = own; ; group = dirname(group)) {
    const limit = /^(\d+) (\d+)/.exec(readText(join('/sys/fs/cgroup', group, 'cpu.max')) ?? '');
    if (limit !== null) quota = Math.min(quota, Number(limit[1]) / Number(limit[2]));
    if (group === '/' || group === '.') return quota;
  }
}

function quotaV1(): number {
  const quota = Number(readText('/sys/fs/cgroup/cpu/cpu.cfs_quota_us') ?? -1);
  const period = Number(readText('/sys/fs/cgroup/cpu/cpu.cfs_period_us') ?? 0);
  return quota > 0 && period > 0 ? quota / period : Number.POSITIVE_INFINITY;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

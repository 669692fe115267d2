// Whether the process that a pidfile names is the one that we started, and how to end it.
// Must not know what it serves.
import { existsSync, readFileSync } from 'node:fs';
import { gone, isAlive, signal } from '../../test/support/processes.ts';

/** The pid in `pidfile`, if that process lives and `mark` is one of its arguments; else null. */
export function findRunning(pidfile: string, mark: string): number | null {
  if (!existsSync(pidfile)) return null;
  const pid = Number(readFileSync(pidfile, 'utf8'));
  return Number.isInteger(pid) && pid > 1 && isAlive(pid) && hasArgument(pid, mark) ? pid : null;
}

/** Ends it by SIGTERM and waits until it is gone; false when there was none. */
export async function stopRunning(pidfile: string, mark: string): Promise<boolean> {
  const pid = findRunning(pidfile, mark);
  if (pid === null) return false;
  signal(pid, 'SIGTERM');
  await gone(pid, 45_000);
  return true;
}

function hasArgument(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(mark);
  } catch {
    return false;
  }
}

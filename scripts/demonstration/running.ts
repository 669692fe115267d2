// Finds out whether the process that a pidfile names is the one that the demo started, and ends it.
import { existsSync, readFileSync } from 'node:fs';
import { gone, isAlive, signal } from '../../test/support/processes.ts';

/** The pid in `pidfile`, if that process lives and its command line is recognised; else null. */
export function findRunning(
  pidfile: string,
  isOurs: (commandLine: string) => boolean,
): number | null {
  if (!existsSync(pidfile)) return null;
  const pid = Number(readFileSync(pidfile, 'utf8'));
  if (!Number.isInteger(pid) || pid < 2 || !isAlive(pid)) return null;
  return isOurs(readCommandLine(pid)) ? pid : null;
}

/** Ends the process by SIGTERM and waits until it is gone. Returns false if there was none. */
export async function stopRunning(
  pidfile: string,
  isOurs: (commandLine: string) => boolean,
): Promise<boolean> {
  const pid = findRunning(pidfile, isOurs);
  if (pid === null) return false;
  signal(pid, 'SIGTERM');
  await gone(pid, 45_000);
  return true;
}

function readCommandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

// Whose turn it is to drain beside a successor: one instance at a time, by a second lock that also names it.
// Must not know how an instance drains.
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { openLockFile, tryLock } from './file-lock.ts';

const retryMs = 100;

const lockPath = (pidfile: string) => `${pidfile}.drain`;

/**
 * Waits until no older instance drains, and holds the turn from then on, until this process ends. `supervisor` is what
 * our workers carry; `onWaiting` is told once, if one drains, what that one's carry. False when `isOver` before that;
 * rejects when the lock cannot be opened or tried.
 */
export async function awaitDrainTurn(
  pidfile: string,
  supervisor: string,
  isOver: () => boolean,
  onWaiting: (older: string) => void,
): Promise<boolean> {
  const fd = openLockFile(lockPath(pidfile));
  let isTold = false;
  try {
    while (!(await tryLock(fd))) {
      if (!isTold) onWaiting(readFileSync(lockPath(pidfile), 'utf8').trim());
      isTold = true;
      if (isOver()) {
        closeSync(fd);
        return false;
      }
      // Looked at again and again: a blocking flock(1) would outlive us when we are killed.
      await delay(retryMs);
    }
    ftruncateSync(fd);
    writeSync(fd, `${supervisor}\n`);
    return true;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** What the workers of the instance that drains now carry; null when none does. The caller holds the claim. */
export async function drainingSupervisor(pidfile: string): Promise<string | null> {
  let fd: number;
  try {
    fd = openSync(lockPath(pidfile), constants.O_RDWR | constants.O_NOFOLLOW);
  } catch {
    // None has ever drained here.
    return null;
  }
  try {
    return (await tryLock(fd)) ? null : readFileSync(fd, 'utf8').trim();
  } finally {
    closeSync(fd);
  }
}

// The claim on an instance: a lock beside the pidfile that the kernel frees when its holder dies.
import {
  closeSync,
  constants,
  ftruncateSync,
  openSync,
  readFileSync,
  realpathSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isStillAt, openLockFile, tryLock } from './file-lock.ts';
import { answerBoundMs, askHolder } from './phase-socket.ts';

/** A claim: of this process, or shared with the one that the descriptor was inherited from. */
export type Claim = {
  readonly fd: number;
  /** Closes this process's copy; the last one frees the claim. Idempotent. */
  readonly close: () => void;
};

/** The claim, or why somebody else's stands. */
export type Claimed =
  | { readonly kind: 'held'; readonly claim: Claim }
  | { readonly kind: 'taken'; readonly reason: string };

const firstRetryMs = 10;
const longestRetryMs = 160;

/** The instance's identity: user and real path of the pidfile. Throws when the pidfile's directory is missing. */
export function instanceOf(pidfile: string): string {
  return `${process.getuid?.() ?? 0}:${join(realpathSync(dirname(pidfile)), basename(pidfile))}`;
}

/**
 * Claims the instance of a pidfile: waits while its holder leaves, gives up when one runs, starts or keeps silent.
 * Rejects when the lock cannot be opened or tried.
 */
export async function claimInstance(pidfile: string): Promise<Claimed> {
  let silentSince = performance.now();
  let retryMs = firstRetryMs;
  for (;;) {
    const claim = await tryClaim(pidfile);
    if (claim !== null) return { kind: 'held', claim };
    const answer = await askHolder(pidfile);
    if (answer.kind === 'stands') return { kind: 'taken', reason: answer.reason };
    if (answer.kind === 'released') {
      silentSince = performance.now();
      retryMs = firstRetryMs;
    } else if (performance.now() - silentSince > answerBoundMs) {
      return { kind: 'taken', reason: 'its holder does not answer' };
    } else {
      // It has locked and does not answer yet, or is just dead: the next attempt tells.
      await delay(retryMs);
      retryMs = Math.min(2 * retryMs, longestRetryMs);
    }
  }
}

/** What an instance's holder says of itself; null when nobody answers. Waits while the holder leaves. */
export async function holderOf(pidfile: string): Promise<string | null> {
  const answer = await askHolder(pidfile);
  return answer.kind === 'stands' ? answer.reason : null;
}

/** Takes over a claim whose descriptor was inherited. */
export function inheritClaim(fd: number): Claim {
  let isOpen = true;
  return {
    fd,
    close: () => {
      if (isOpen) closeSync(fd);
      isOpen = false;
    },
  };
}

/** Null when somebody holds it. */
async function tryClaim(pidfile: string): Promise<Claim | null> {
  const path = `${pidfile}.lock`;
  for (;;) {
    const claim = inheritClaim(openLockFile(path));
    try {
      const isLocked = await tryLock(claim.fd);
      if (isLocked && isStillAt(path, claim.fd)) return claim;
      claim.close();
      if (!isLocked) return null;
    } catch (error) {
      claim.close();
      throw error;
    }
  }
}

const retryMs = 100;

const lockPath = (pidfile: string) => `${pidfile}.drain`;

/**
 * Waits until no older instance drains, and holds the turn from then on, until this process ends. `supervisor` is what
 * our workers carry; `onWaiting` is told once, if one drains, what that one's carry. False when `isOver` before that;
 * rejects when the lock cannot be opened or tried.
 */
export async function acquireDrainLock(
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

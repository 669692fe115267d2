// The two locks of an instance beside its pidfile, which the kernel frees when their holder dies: the claim, and the drain lock.
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

/** A claim, possibly shared with the process that the descriptor was inherited from. */
export type Claim = {
  readonly fd: number;
  /** Closes this process's copy. Closing the last copy frees the claim. Idempotent. */
  readonly close: () => void;
};

/** The claim, or why another process keeps it. */
export type Claimed =
  | { readonly kind: 'held'; readonly claim: Claim }
  | { readonly kind: 'taken'; readonly reason: string };

const firstRetryMs = 10;
const longestRetryMs = 160;

/** The instance's identity: user and real path of the pidfile. Throws if the pidfile's directory is missing. */
export function instanceOf(pidfile: string): string {
  return `${process.getuid?.() ?? 0}:${join(realpathSync(dirname(pidfile)), basename(pidfile))}`;
}

/**
 * Claims the instance of a pidfile. Waits while the holder leaves, and gives up if it runs, starts or does not answer.
 * Rejects if the lock cannot be opened or tried.
 */
export async function claimInstance(pidfile: string): Promise<Claimed> {
  let silentSince = performance.now();
  let retryMs = firstRetryMs;
  for (;;) {
    const claim = await tryClaim(pidfile);
    if (claim !== null) return { kind: 'held', claim };
    const answer = await askHolder(pidfile);
    if (answer.kind === 'remains') return { kind: 'taken', reason: answer.reason };
    if (answer.kind === 'released') {
      silentSince = performance.now();
      retryMs = firstRetryMs;
    } else if (performance.now() - silentSince > answerBoundMs) {
      return { kind: 'taken', reason: 'its holder does not answer' };
    } else {
      // The holder does not answer yet, or has just died. The next attempt finds out.
      await delay(retryMs);
      retryMs = Math.min(2 * retryMs, longestRetryMs);
    }
  }
}

/** The phase of an instance's holder. Null: none answers. Waits while the holder leaves. */
export async function holderOf(pidfile: string): Promise<string | null> {
  const answer = await askHolder(pidfile);
  return answer.kind === 'remains' ? answer.reason : null;
}

/** The claim of an inherited descriptor. */
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

/** The lock file of the claim. */
export function claimLockOf(pidfile: string): string {
  return `${pidfile}.lock`;
}

/** Null: another process holds it. */
async function tryClaim(pidfile: string): Promise<Claim | null> {
  const path = claimLockOf(pidfile);
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
 * Waits until no older instance drains, and then holds the drain lock until this process ends, or gives up if `isOver`. Rejects if the
 * lock cannot be opened or tried.
 * @param supervisor the mark of this supervisor's workers, which is written into the lock file
 * @param onWaiting called once with the mark of the older instance, if one drains
 */
export async function acquireDrainLock(
  pidfile: string,
  supervisor: string,
  isOver: () => boolean,
  onWaiting: (older: string) => void,
): Promise<void> {
  const fd = openLockFile(lockPath(pidfile));
  let isReported = false;
  try {
    while (!(await tryLock(fd))) {
      if (!isReported) onWaiting(readFileSync(lockPath(pidfile), 'utf8').trim());
      isReported = true;
      if (isOver()) {
        closeSync(fd);
        return;
      }
      // Polls, because a blocking flock(1) would outlive this process if it is killed.
      await delay(retryMs);
    }
    ftruncateSync(fd);
    writeSync(fd, `${supervisor}\n`);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** The mark of the workers of the instance that drains now. Null: none drains. The caller holds the claim. */
export async function drainingSupervisor(pidfile: string): Promise<string | null> {
  let fd: number;
  try {
    fd = openSync(lockPath(pidfile), constants.O_RDWR | constants.O_NOFOLLOW);
  } catch {
    // No instance has ever drained here.
    return null;
  }
  try {
    return (await tryLock(fd)) ? null : readFileSync(fd, 'utf8').trim();
  } finally {
    closeSync(fd);
  }
}

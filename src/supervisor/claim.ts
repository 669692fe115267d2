// The claim on an instance: a lock beside the pidfile that the kernel frees when its holder dies.
// Must not know the pidfile's content, nor what the holder does.
import { closeSync, realpathSync } from 'node:fs';
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

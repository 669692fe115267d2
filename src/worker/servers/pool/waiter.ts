// What the pool and those who want a session from it say to each other.
// Must not know either.
import type { Session } from './session.ts';

/** Why a request did not get a session; its statement never reached MySQL. */
export type Refusal = 'queue full' | 'waited too long' | 'database unreachable' | 'stopping';

/** How long a request may wait behind others. `max_wait` is a limit beside it. */
export type WaitLimit = {
  /** When the request began to wait (performance.now). */
  readonly since: number;
  /** A quarter of the request's deadline, in ms. */
  readonly longestMs: number;
};

/** Somebody who wants a session. Exactly one of the two is called, once, unless withdrawn. */
export interface Waiter {
  /** The gateway's own, and no request: it waits in the same order, but takes no place of `queue`. */
  readonly isOwn?: boolean;
  /** It has lost its session in the middle, and must find out what became of it: it comes first, and waits for a server that is gone. */
  readonly isRecovering?: boolean;
  /** Missing: it may wait for any time. */
  readonly waitLimit?: WaitLimit;
  /** Called when it has waited for too long. Returns what takes its place in the queue; null, or missing: nothing does. */
  handOverPlace?(): Waiter | null;
  /**
   * The session is the waiter's until it is released.
   * @param openingSince when its connection began to be opened (performance.now), where that has just ended; null: it was there before
   */
  granted(session: Session, openingSince: number | null): void;
  refused(reason: Refusal): void;
}

/** What the user of a session says about it: an `unclean` one is reset before it is lent again. */
export type Verdict = 'clean' | 'unclean' | 'broken';

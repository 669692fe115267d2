// The owner of a request that waits, and how long it may wait.
import type { Account } from '../account.ts';

/** The client and user whose turn a request takes. */
export type RequestOwner = {
  readonly account: Account;
  /** The user within the client; null: the client has named none. */
  readonly user: string | null;
};

/** How long a request may wait behind others, and whose it is. `max_wait` of the section and of the client are limits beside it. */
export type WaitLimit = RequestOwner & {
  /** When the request began to wait (performance.now). */
  readonly since: number;
  /** A quarter of the request's deadline, in ms. */
  readonly longestMs: number;
};

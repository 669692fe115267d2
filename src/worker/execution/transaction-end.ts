// How a transaction that a client held has ended, why, and what remains of it.
import type { StopReason } from './stop-reason.ts';

/**
 * How a transaction has ended. `ended`: by a statement in it, or by an error that undid it; `stopped`: a statement of it was
 * stopped; `moved`: its server must not be used any more; `unknown`: COMMIT has no answer.
 */
export const transactionEnds = [
  'committed',
  'rolled_back',
  'unknown',
  'ended',
  'stopped',
  'idle',
  'too_old',
  'lost',
  'moved',
  'stopping',
] as const;

export type TransactionEnd = (typeof transactionEnds)[number];

/** The rest of a transaction that did not end by COMMIT. */
export type Left = 'nothing' | 'something' | 'unknown';

/** The cause of an end, if it is more than the end itself shows. */
export type EndCause = {
  /** The limit that the transaction exceeded. */
  readonly limitMs?: number;
  /** MySQL's error that ended it. */
  readonly errno?: number;
  /** Why one of its statements was stopped; missing: it was too old. */
  readonly stop?: StopReason;
  /** The server closed the connection. Missing: the connection broke. */
  readonly isClosedByServer?: true;
};

export const noCause: EndCause = {};

/**
 * A transaction that is over, as clients see it. `worker gone`: of another worker, which has ended; `forgotten`: it ended long ago;
 * `no such`: the token is not one that the client got for this section.
 */
export type TransactionOver = {
  readonly end: TransactionEnd | 'worker gone' | 'forgotten' | 'no such';
  readonly left: Left;
  readonly cause: EndCause;
};

/** No transaction is known by this token. Another gateway may have begun one, and may have sent its COMMIT. */
export const noSuchTransaction: TransactionOver = {
  end: 'no such',
  left: 'unknown',
  cause: noCause,
};

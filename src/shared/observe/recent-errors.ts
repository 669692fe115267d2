// A request that went wrong, as it is told between processes and to people: never a literal, never a server's words.
// Must not know who tells it.
import type { FailureCode, RequestOutcome } from '../failure-codes.ts';

/** One of them. */
export type RecentError = {
  /** When it ended: ISO 8601, in UTC. */
  readonly at: string;
  readonly request_id: string;
  /** Null: it was refused before its section was known. */
  readonly section: string | null;
  readonly status: number;
  /** Null: it is MySQL's own error. */
  readonly code: FailureCode | null;
  /** MySQL's number; null: it is not MySQL's error. */
  readonly errno: number | null;
  readonly outcome: RequestOutcome;
  /** Its statements without literals; null: they are not known. */
  readonly shape: string | null;
};

/** So many are kept and told, the latest. */
export const mostRecentErrors = 50;

// What is told of one request's statements when they are over; logs and metrics each take their part.
// Must not know who tells it.
import type { FailureCode, RequestOutcome } from '../../shared/failure-codes.ts';

/** What is told about an exchange when it is over; times in ms. */
export type ExchangeSummary = {
  readonly requestId: string;
  /** The section's name. */
  readonly section: string;
  /** Null: it is part of no trace. */
  readonly traceId: string | null;
  readonly status: number;
  readonly outcome: RequestOutcome;
  /** Why it failed; null: it did not, or by MySQL's own error. */
  readonly code: FailureCode | null;
  /** MySQL's number where it refused a statement; null: it did not. */
  readonly errno: number | null;
  /** Whether the reply had begun and was reset. */
  readonly wasCut: boolean;
  readonly clientGone: boolean;
  readonly isRead: boolean;
  readonly rows: number;
  readonly bytes: number;
  readonly queueMs: number;
  /** What part of `queueMs` was for a connection to be opened. */
  readonly connectingMs: number;
  readonly databaseMs: number;
  /** What part of `databaseMs` came before the first row, or the first answer without rows. */
  readonly firstRowMs: number;
  readonly durationMs: number;
  /** What was run, literals included: not to be logged as it is. Null: no statement. */
  readonly sql: string | null;
};

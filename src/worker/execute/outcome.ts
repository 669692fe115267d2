// What may become of a request's statements, and who may stop them.
// Must not know how they are run.
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { Refusal } from '../backend/waiter.ts';

/** Why a run was stopped from outside. */
export type StopReason = 'deadline' | 'client gone' | 'stalled' | 'too large' | 'stopping';

/** What became of the statements. */
export type RunEnd =
  /** MySQL answered to the end; the error, if any, has been given to the sink. */
  | { readonly kind: 'answered'; readonly error: ServerError | null }
  /** Nothing was sent to MySQL. */
  | { readonly kind: 'not executed'; readonly reason: Refusal | StopReason }
  /** Stopped while running; whatever MySQL may still answer is not trusted. */
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  /** A READ ONLY run was cut short, and there was no second one. */
  | { readonly kind: 'cut short'; readonly reason: Refusal | StopReason }
  /** An exception was thrown while the statements were handled; it is whoever gets this that must have it logged. */
  | { readonly kind: 'faulted'; readonly isSent: boolean; readonly cause: unknown }
  /** The connection was lost after the statement was sent. */
  | { readonly kind: 'lost' };

/** What became of the statements of a request that got no result. */
export type Outcome = 'not_executed' | 'failed' | 'partial' | 'rolled_back' | 'unknown';

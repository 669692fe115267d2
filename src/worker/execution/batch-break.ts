// Interruptions of a batch, their meaning for its data, and the end that is reported. Pure.
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { Outcome } from '../failure/failure.ts';
import { serverFailure } from '../failure/server-failure.ts';

import type { BatchFault, RunEnd } from './execution.ts';
import { leavesUnknown } from './statement-failure.ts';
import type { StopReason } from './stop-reason.ts';

/** An interruption of a batch. */
export type Break =
  | {
      readonly kind: 'refused';
      readonly error: ServerError;
      /** The number of the statement; null: it was none of the client's statements. */
      readonly step: number | null;
      readonly isCall: boolean;
      /** The key was refused: nothing of the batch has run. */
      readonly isOfKey: boolean;
    }
  /** The key is committed already. */
  | { readonly kind: 'taken' }
  /** The idempotency table has no transactions, or is not there. Nothing was executed, and no transaction has begun. */
  | { readonly kind: 'other engine' }
  /** The idempotency table cannot be used. */
  | { readonly kind: 'no table' }
  | { readonly kind: 'fault'; readonly fault: BatchFault; readonly step: number }
  | {
      readonly kind: 'stopped';
      readonly reason: StopReason;
      /** The answer to the statement that ran then. */
      readonly error: ServerError | null;
      readonly isCall: boolean;
    }
  | { readonly kind: 'lost' };

/** Everything except a key that is taken, whose row says what to report, and a table whose check does. */
export type Interruption = Exclude<Break, { kind: 'taken' | 'other engine' }>;

/** Deadlock, lock wait, snapshot, conflict in a replication group: the same batch may succeed the next time. */
const worthAnotherTry = new Set([1213, 1205, 1020, 3101]);
/**
 * ER_OPTION_PREVENTS_STATEMENT, ER_RUN_HOOK_ERROR: the server has rolled back a COMMIT that it answers with one of these (MySQL's
 * `MYSQL_BIN_LOG::commit` does so before it reports the error).
 */
const undoesCommit = new Set([1290, 3100]);

/** Whether the same statements may succeed when they run again. */
export function isWorthAnotherTry(broken: Break): boolean {
  return worthAnotherTry.has(errnoOf(broken));
}

/**
 * Whether the server has undone the transaction by itself; if not, it is still open.
 * @param wasCommitting the error answers a COMMIT
 */
export function isUndoing(broken: Break, wasCommitting: boolean): boolean {
  const error = 'error' in broken ? broken.error : null;
  return error !== null && undoesTransaction(error, wasCommitting);
}

/** The same for an error alone. */
export function undoesTransaction({ errno }: ServerError, wasCommitting: boolean): boolean {
  return worthAnotherTry.has(errno) || (wasCommitting && undoesCommit.has(errno));
}

/** Whether it interrupted a CALL, which may have committed before. */
export function isOfCall(broken: Break): boolean {
  return 'isCall' in broken && broken.isCall;
}

/** The outcome of statements without a transaction around them. */
export function outcomeWithoutTransaction(broken: Break): Outcome {
  if (broken.kind === 'stopped') return 'unknown';
  const isFirst = broken.kind === 'refused' && broken.step === 0;
  if (isFirst && leavesUnknown(broken.error)) return 'unknown';
  return isFirst && !isOfCall(broken) ? 'failed' : 'partial';
}

/**
 * The end that is reported.
 * @param isReadOnly whether the batch runs READ ONLY
 * @param stopReason why the batch was stopped meanwhile
 */
export function describeBreak(
  broken: Interruption,
  outcome: Outcome,
  isReadOnly: boolean,
  stopReason: StopReason | null,
): RunEnd {
  switch (broken.kind) {
    case 'refused': {
      const work = { isReadOnly, isRead: isReadOnly };
      const place = broken.step === null ? null : { statement: broken.step };
      const failure = serverFailure(broken.error, work, outcome, place);
      return { kind: 'answered', failure, facts: null };
    }
    case 'fault':
      return { kind: 'batch failed', fault: broken.fault, statement: broken.step, outcome };
    case 'stopped':
      return { kind: 'batch stopped', reason: broken.reason, outcome };
    case 'no table':
      return outcome === 'rolled_back'
        ? { kind: 'key refused', reason: 'no table' }
        : { kind: 'key refused', reason: 'no table', left: outcome };
    case 'lost':
      return stopReason === null
        ? { kind: 'lost', outcome: 'unknown' }
        : { kind: 'stopped', reason: stopReason };
    default:
      return broken satisfies never;
  }
}

/** The server's error number; 0: there is none. */
function errnoOf(broken: Break): number {
  return 'error' in broken ? (broken.error?.errno ?? 0) : 0;
}

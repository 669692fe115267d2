// Why a batch's work has ended without its end, what that means for the data, and what is told of it. Pure.
// Must not know sessions.
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { Outcome } from '../failure/failure.ts';
import { serverFailure } from '../failure/server-failure.ts';

import type { BatchFault, RunEnd, StopReason } from './execution.ts';
import { leavesUnknown } from './statement-failure.ts';

/** What has come between. */
export type Break =
  | {
      readonly kind: 'refused';
      readonly error: ServerError;
      /** Null: it was none of the batch's statements. */
      readonly step: number | null;
      readonly isCall: boolean;
      /** It was the taking of the key: nothing of the batch has been run. */
      readonly isOfKey: boolean;
    }
  /** Somebody has committed the key. */
  | { readonly kind: 'taken' }
  /** The table of keys is not what it must be. */
  | { readonly kind: 'no table' }
  | { readonly kind: 'fault'; readonly fault: BatchFault; readonly step: number }
  | {
      readonly kind: 'stopped';
      readonly reason: StopReason;
      /** What the statement that ran then was answered with. */
      readonly error: ServerError | null;
      readonly isCall: boolean;
    }
  | { readonly kind: 'lost' };

/** What is told as itself: of a key that is taken its row is. */
export type Told = Exclude<Break, { kind: 'taken' }>;

/** Deadlock, lock wait, snapshot, a conflict in a replication group: the same batch may succeed the next time. */
const worthAnotherTry = new Set([1213, 1205, 1020, 3101]);
/**
 * ER_OPTION_PREVENTS_STATEMENT, ER_RUN_HOOK_ERROR (MySQL's `MYSQL_BIN_LOG::commit` rolls back before it says so): a COMMIT that is
 * answered with one of them has been rolled back.
 */
const undoesCommit = new Set([1290, 3100]);

/** Whether the same statements may succeed when they are begun anew. */
export function isWorthAnotherTry(broken: Break): boolean {
  return worthAnotherTry.has(errnoOf(broken));
}

/**
 * Whether the server has undone the transaction itself, or left it open for us to do it.
 * @param wasCommitting it was COMMIT that was answered so
 */
export function isUndoing(broken: Break, wasCommitting: boolean): boolean {
  const error = 'error' in broken ? broken.error : null;
  return error !== null && undoesTransaction(error, wasCommitting);
}

/** The same of an error by itself. */
export function undoesTransaction({ errno }: ServerError, wasCommitting: boolean): boolean {
  return worthAnotherTry.has(errno) || (wasCommitting && undoesCommit.has(errno));
}

/** A CALL may have committed before. */
export function isOfCall(broken: Break): boolean {
  return 'isCall' in broken && broken.isCall;
}

/** What became of statements that each committed by themselves. */
export function outcomeWithoutTransaction(broken: Break): Outcome {
  if (broken.kind === 'stopped') return 'unknown';
  const isFirst = broken.kind === 'refused' && broken.step === 0;
  if (isFirst && leavesUnknown(broken.error)) return 'unknown';
  return isFirst && !isOfCall(broken) ? 'failed' : 'partial';
}

/**
 * The end that is reported.
 * @param isReadOnly whether the batch was to run READ ONLY
 * @param stopReason why the batch was stopped meanwhile; null: it was not
 */
export function describeBreak(
  broken: Told,
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

/** 0: no error of the server's. */
function errnoOf(broken: Break): number {
  return 'error' in broken ? (broken.error?.errno ?? 0) : 0;
}

// What is run for a batch, and whether each of its statements may stand in one; decided before anything runs. Pure.
// Must not know the reply, nor how a batch is run.
import { classify } from '../../../shared/sql/classify.ts';
import { scanStatements } from '../../../shared/sql/statements.ts';
import { whyNotInTransaction } from '../../../shared/sql/transaction-safe.ts';
import type { Known } from '../../catalogue/table-effects.ts';
import type { Batch, BatchStep, Expectation } from '../../execute/batch.ts';
import type { Statement } from '../../execute/preparation.ts';
import { type Failure, refusal } from '../../reply/failure.ts';
import { decideStatement, type StatementSettings } from '../statement.ts';
import type { AskedStatement, BatchRequest } from './batch-request.ts';

/** A batch to run, or why nothing is run. */
export type DecidedBatch =
  | { readonly ok: true; readonly batch: Batch }
  | { readonly ok: false; readonly failure: Failure };

/**
 * What is run for a request to /v1/batch; the first statement that may not be refuses all of them.
 * @param mostBytes how long a statement may become by its parameters
 * @param catalogue what is known of the server's tables and functions
 */
export function decideBatch(
  config: StatementSettings,
  request: BatchRequest,
  mostBytes: number,
  catalogue: Known,
): DecidedBatch {
  const isReadOnly = config.readOnly || request.readOnly;
  const steps: BatchStep[] = [];
  for (const [number, asked] of request.statements.entries()) {
    const step = decideStep(config, asked, isReadOnly, mostBytes, catalogue);
    if ('code' in step) {
      const failure = { ...step, place: { ...step.place, statement: number } };
      return { ok: false, failure };
    }
    steps.push(step);
  }
  return {
    ok: true,
    batch: {
      steps,
      // That nothing is written is the server's promise in a READ ONLY transaction only.
      isAtomic: request.isAtomic || isReadOnly,
      isolation: request.isolation,
      isReadOnly,
      mostRetries: request.retry,
      isDryRun: false,
      mustUndo: null,
      key: null,
    },
  };
}

function decideStep(
  config: StatementSettings,
  { sql, params, expect }: AskedStatement,
  readOnly: boolean,
  mostBytes: number,
  catalogue: Known,
): BatchStep | Failure {
  const decided = decideStatement(
    config,
    {
      sql,
      params,
      paramsKey: 'params',
      readOnly,
      isSingle: true,
      rollbackOnError: false,
      asksServer: false,
      format: null,
    },
    mostBytes,
    catalogue,
  );
  if (!decided.ok) return decided.failure;
  const step = createStep(decided.statement, expect);
  const reason = whyNotInTransaction(step.sql);
  return reason === null
    ? step
    : refusal('NOT_IN_TRANSACTION', `The statement is not taken in a batch: ${reason}.`);
}

/** Without the semicolons at its end, so that another one may follow. */
function createStep(statement: Statement, expect: Expectation | null): BatchStep {
  const text = statement.sql ?? '';
  const [scanned] = scanStatements(text);
  const sql = text.slice(scanned?.start ?? 0, scanned?.end);
  return { sql, statement, isCall: scanned?.isCall === true, expect };
}

/** A batch of one statement; or why it may not stand in one. */
export function decideSingle(statement: Statement): Batch | Failure {
  const step = createStep(statement, null);
  const reason = whyNotInTransaction(step.sql);
  if (reason !== null) {
    return refusal('NOT_IN_TRANSACTION', `The statement is not taken with a key: ${reason}.`);
  }
  return {
    steps: [step],
    isAtomic: true,
    isolation: null,
    isReadOnly: statement.isReadOnly,
    mostRetries: 0,
    isDryRun: false,
    mustUndo: null,
    key: null,
  };
}

/** What is wanted of a statement that may have to be undone. */
export type Undoable = { readonly maxAffected: number | null; readonly isDryRun: boolean };

/**
 * A batch of one, which is undone in the end, or when it touches too many rows; or why it is not run: it is not known
 * that all it does can be undone. Of its tables the server is asked before it is run.
 */
export function decideUndoable(
  statement: Statement,
  { maxAffected, isDryRun }: Undoable,
  catalogue: Known,
): Batch | Failure {
  const found = classify(statement.sql ?? '', catalogue.builtIns);
  const { kind, tables, readOnlyAllowed, leavesSessionClean } = found;
  const isRead = kind === 'read';
  const expect: Expectation | null =
    maxAffected === null || isRead
      ? null
      : { of: 'affected_rows', least: 0, most: maxAffected, code: 'TOO_MANY_ROWS' };
  const step = createStep(statement, expect);
  const isKnown = isRead || (kind === 'write' && tables !== null && leavesSessionClean);
  const reason = isKnown
    ? whyNotInTransaction(step.sql)
    : 'it is not known that a ROLLBACK undoes all that it does';
  if (reason !== null) {
    return refusal(
      'NOT_UNDOABLE',
      `The statement is not run with dry_run or max_affected: ${reason}.`,
    );
  }
  return {
    steps: [step],
    isAtomic: true,
    isolation: null,
    isReadOnly: statement.isReadOnly || (isRead && readOnlyAllowed),
    mostRetries: 0,
    isDryRun,
    mustUndo: isRead || tables === null ? null : { tables },
    key: null,
  };
}

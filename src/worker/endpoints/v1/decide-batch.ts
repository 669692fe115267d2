// Decides how a batch runs, and whether each of its statements may be part of one, before anything runs. Pure.
import type { Caller } from '../../../shared/clients/caller.ts';
import { isAllowed } from '../../../shared/clients/client.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import { whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { Known } from '../../execution/statement-effects.ts';
import { dependsOnRowCount } from '../../execution/warnings.ts';
import type { AnalysedStatement, Batch, BatchStep, Expectation } from '../../execution/work.ts';
import { forbidden, type Refused, refuse } from '../../failure/failure.ts';
import { decideStatement, type StatementSettings, type StatementWish } from '../statement.ts';
import type { AskedStatement, BatchRequest } from './batch-request.ts';

/** A batch to run, or why nothing is run. */
export type DecidedBatch = { readonly ok: true; readonly batch: Batch } | Refused;

/**
 * Decides how a request to /v1/batch runs. The first statement that may not run refuses all of them.
 * @param maxBytes how long a statement may become by its parameters
 * @param catalogue what is known of the server's tables and functions
 */
export function* decideBatch(
  config: StatementSettings,
  request: BatchRequest,
  caller: Caller,
  maxBytes: number,
  catalogue: Known,
): Pieces<DecidedBatch> {
  const isReadOnly = config.readOnly || request.readOnly;
  const steps: BatchStep[] = [];
  for (const [number, asked] of request.statements.entries()) {
    if (number % statementsInPiece === statementsInPiece - 1) yield;
    const next = request.statements[number + 1];
    const showsWarnings = request.showWarnings && !dependsOnRowCount(next?.sql ?? '');
    const wish = wishOf(asked, caller, isReadOnly, showsWarnings);
    const decided = isAllowed(caller.client, 'sql')
      ? yield* decideStatement(config, wish, maxBytes, catalogue)
      : noSql;
    const step = decided.ok ? decideStep(decided.statement, asked) : decided;
    if (!step.ok) {
      const { failure } = step;
      const place = { ...failure.place, statement: number };
      return { ok: false, failure: { ...failure, place } };
    }
    steps.push(step.step);
  }
  return {
    ok: true,
    batch: {
      kind: 'batch',
      steps,
      // Only in a READ ONLY transaction does the server promise that nothing is written.
      isAtomic: request.isAtomic || isReadOnly,
      isolation: request.isolation,
      isReadOnly,
      maxRetries: request.retry,
      isDryRun: false,
      mustUndo: null,
      key: null,
    },
  };
}

/** A step that is SQL needs that permission, beside the one for batches. */
const noSql: Refused = { ok: false, failure: forbidden('sql') };

/** One takes a few microseconds. */
const statementsInPiece = 64;

function wishOf(
  { sql, params }: AskedStatement,
  caller: Caller,
  readOnly: boolean,
  showsWarnings: boolean,
): StatementWish {
  return {
    caller,
    sql,
    params,
    paramsKey: 'params',
    readOnly,
    isSingle: true,
    needsEffect: false,
    rollbackOnError: false,
    asksServer: false,
    showsWarnings,
    format: null,
  };
}

function decideStep(
  statement: AnalysedStatement,
  { expect }: AskedStatement,
): { readonly ok: true; readonly step: BatchStep } | Refused {
  const whyNot = whyNotInTransaction(statement.analysis);
  return whyNot === null
    ? { ok: true, step: createStep(statement, expect) }
    : refuse('NOT_IN_TRANSACTION', `The statement is not allowed in a batch: ${whyNot}.`);
}

/** Without the semicolons at its end, so that another one may follow. */
function createStep(statement: AnalysedStatement, expect: Expectation | null): BatchStep {
  const [only] = statement.analysis.statements;
  const sql = statement.sql.slice(only?.start ?? 0, only?.end);
  return { sql, statement, isCall: only?.isCall === true, expect };
}

/** A batch of one statement; or why it may not be one. */
export function decideSingle(statement: AnalysedStatement): DecidedBatch {
  const whyNot = whyNotInTransaction(statement.analysis);
  if (whyNot !== null) {
    return refuse(
      'NOT_IN_TRANSACTION',
      `The statement is not allowed with an Idempotency-Key: ${whyNot}.`,
    );
  }
  return batchOfOne(createStep(statement, null), { isReadOnly: statement.isReadOnly });
}

function batchOfOne(
  step: BatchStep,
  differences: Pick<Batch, 'isReadOnly'> & Partial<Pick<Batch, 'isDryRun' | 'mustUndo'>>,
): DecidedBatch {
  const batch: Batch = {
    kind: 'batch',
    steps: [step],
    isAtomic: true,
    isolation: null,
    maxRetries: 0,
    isDryRun: false,
    mustUndo: null,
    key: null,
    ...differences,
  };
  return { ok: true, batch };
}

/** Why a statement may have to be undone. */
export type Undoable = { readonly maxAffected: number | null; readonly isDryRun: boolean };

/**
 * A batch of one, which is undone in the end, or when it touches too many rows; or why it is not run: it is not known
 * that all it does can be undone. The server is asked about its tables before it is run.
 */
export function decideUndoable(
  statement: AnalysedStatement,
  { maxAffected, isDryRun }: Undoable,
): DecidedBatch {
  const { kind, tables, readOnlyAllowed, leavesSessionClean } = statement.analysis.classification;
  const isRead = kind === 'read';
  const isKnown = isRead || (kind === 'write' && tables !== null && leavesSessionClean);
  const whyNot = isKnown
    ? whyNotInTransaction(statement.analysis)
    : 'it is not known that a ROLLBACK undoes all that it does';
  if (whyNot !== null) {
    const message = `The statement is not run with dry_run or max_affected: ${whyNot}.`;
    return refuse('NOT_UNDOABLE', message);
  }
  const expect: Expectation | null =
    maxAffected === null || isRead
      ? null
      : { of: 'affected_rows', min: 0, max: maxAffected, code: 'TOO_MANY_ROWS' };
  return batchOfOne(createStep(statement, expect), {
    isReadOnly: statement.isReadOnly || (isRead && readOnlyAllowed),
    isDryRun,
    mustUndo: isRead || tables === null ? null : { tables },
  });
}

// The steps of a batch, and batches of one statement.
import { whyNotInTransaction } from '../../shared/sql/transactions.ts';
import type { AnalysedStatement, Batch, BatchStep, Expectation } from '../execution/work.ts';
import { type Refused, refuse } from '../failure/failure.ts';

/** A batch to run, or why nothing is run. */
export type DecidedBatch = { readonly ok: true; readonly batch: Batch } | Refused;

/** A step to run, or why it may not be one. */
export type DecidedStep = { readonly ok: true; readonly step: BatchStep } | Refused;

/** Decides whether a statement may be a step of a batch. */
export function decideStep(statement: AnalysedStatement, expect: Expectation | null): DecidedStep {
  const whyNot = whyNotInTransaction(statement.analysis);
  return whyNot === null
    ? { ok: true, step: createStep(statement, expect) }
    : refuse('NOT_IN_TRANSACTION', `The statement is not allowed in a batch: ${whyNot}.`);
}

/** Without the semicolons at its end, so that another one may follow. */
export function createStep(statement: AnalysedStatement, expect: Expectation | null): BatchStep {
  const [only] = statement.analysis.statements;
  const sql = statement.sql.slice(only?.start ?? 0, only?.end);
  return { sql, statement, isCall: only?.isCall === true, expect };
}

/** A batch of one statement; or why it may not be one. */
export function decideSingle(
  statement: AnalysedStatement,
  expect: Expectation | null = null,
): DecidedBatch {
  const whyNot = whyNotInTransaction(statement.analysis);
  if (whyNot !== null) {
    return refuse(
      'NOT_IN_TRANSACTION',
      `The statement is not allowed with an Idempotency-Key: ${whyNot}.`,
    );
  }
  const { isReadOnly } = statement;
  return { ok: true, batch: batchOf([createStep(statement, expect)], { isReadOnly }) };
}

/** A batch in one transaction, which counts if all of its statements succeed. */
export function batchOf(
  steps: readonly BatchStep[],
  differences: Pick<Batch, 'isReadOnly'> &
    Partial<Pick<Batch, 'isDryRun' | 'mustUndo' | 'maxRetries'>>,
): Batch {
  return {
    kind: 'batch',
    steps,
    isAtomic: true,
    isolation: null,
    maxRetries: 0,
    isDryRun: false,
    mustUndo: null,
    key: null,
    ...differences,
  };
}

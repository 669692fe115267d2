// A statement that MySQL refused: which one of a request's it was, and what stands of those before it.
// Pure. Must not know how results arrive.
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { ResultNote } from '../../shared/mysql/query.ts';
import { type Applied, mayFailInPart, rollbackUndoesAll } from '../../shared/sql/rollback.ts';
import { createResultMap, type Statement, scanStatements } from '../../shared/sql/statements.ts';
import type { Outcome } from '../failure/failure.ts';

/** What is to be told of it. */
export type StatementFailure = {
  readonly error: ServerError;
  /** The number of the statement in the request's text, from 0. */
  readonly statement: number;
  /** Whether it may have applied a part of itself all the same, as a CALL may. */
  readonly mayBePartial: boolean;
  /** Whether the server could not tell what became of it: it may stand, whole. */
  readonly isUnknown: boolean;
  /** After a ROLLBACK: whether it has undone all that was done before. */
  readonly rolledBack: boolean;
  /** Where it was one of a batch: what became of all of it. */
  readonly batch?: BatchFailure;
};

/** What became of a batch of which MySQL refused a statement. */
export type BatchFailure = {
  readonly outcome: Outcome;
  /** It was none of the batch's own, but one of those around them, as COMMIT is. */
  readonly isAround: boolean;
};

/** ER_PARSE_ERROR: the statement was not run, whatever its first word is. */
const syntaxError = 1064;
/** ER_ERROR_DURING_COMMIT: a node of Galera that loses its quorum meanwhile says so also of what the cluster applies in the end. */
const errorDuringCommit = 1180;

/** Whether an error leaves open what became of its statement. */
export function leavesUnknown({ errno }: ServerError): boolean {
  return errno === errorDuringCommit;
}

/**
 * @param results the complete results before the failure
 * @param isRolledBack whether ROLLBACK was run after it
 * @param scanned the statements of the text, where they are known; null: they are looked for
 */
export function describeFailure(
  sql: string,
  results: readonly ResultNote[],
  error: ServerError,
  isRolledBack: boolean,
  scanned: readonly Statement[] | null = null,
): StatementFailure {
  const statements = scanned ?? scanStatements(sql);
  const map = createResultMap(statements);
  const applied: Applied[] = results.map(({ isResultSet, inTransaction }) => ({
    verb: statements[map.next(isResultSet)]?.verb ?? '',
    inTransaction,
  }));
  const statement = map.next(false);
  const verb = error.errno === syntaxError ? '' : (statements[statement]?.verb ?? '');
  const isUnknown = leavesUnknown(error);
  const rolledBack = isRolledBack && !isUnknown && rollbackUndoesAll(applied, verb);
  return { error, statement, mayBePartial: mayFailInPart(verb), isUnknown, rolledBack };
}

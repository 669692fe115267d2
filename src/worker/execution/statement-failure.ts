// A statement that MySQL refused: which one of a request's it was, and what remains of those before it. Pure.
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { ResultNote } from '../../shared/mysql/query.ts';
import { type Effect, mayRemainInPart, rollbackUndoesAll } from '../../shared/sql/rollback.ts';
import { createResultMap, type StatementShape } from '../../shared/sql/statements.ts';
import type { ServerFailure } from '../failure/failure.ts';
import { type RefusedWork, serverFailure } from '../failure/server-failure.ts';

/** ER_PARSE_ERROR: the statement was not run, whatever its first word is, unless it runs others. */
const syntaxError = 1064;
/** ER_ERROR_DURING_COMMIT: a node of Galera that loses its quorum meanwhile says so also of what the cluster applies in the end. */
const errorDuringCommit = 1180;

/** Whether an error leaves open what became of its statement. */
export function leavesUnknown({ errno }: ServerError): boolean {
  return errno === errorDuringCommit;
}

/** The statements of a request's text, and what the meaning of an error depends on. */
export type RefusedText = RefusedWork & { readonly statements: readonly StatementShape[] };

/** Whether the first statement may have applied a part of itself though it was refused, as a CALL may. */
export function mayBePartial({ statements: [first] }: RefusedText, error: ServerError): boolean {
  return mayRemainInPart(effectOfFailed(first, error));
}

function effectOfFailed(failed: StatementShape | undefined, { errno }: ServerError): Effect {
  const effect = failed?.effect ?? 'nothing';
  return errno === syntaxError && effect !== 'program' ? 'nothing' : effect;
}

/**
 * @param results the complete results before the failure
 * @param isRolledBack whether ROLLBACK was run after it
 */
export function statementFailure(
  text: RefusedText,
  results: readonly ResultNote[],
  error: ServerError,
  isRolledBack: boolean,
): ServerFailure {
  const { statements } = text;
  const map = createResultMap(statements);
  const applied = results.map((note) => ({
    ...note,
    effect: statements[map.next(note.isResultSet)]?.effect ?? 'nothing',
  }));
  const statement = map.next(false);
  const effect = effectOfFailed(statements[statement], error);
  const isUnknown = leavesUnknown(error);
  if (isRolledBack && !isUnknown && rollbackUndoesAll(applied, effect)) {
    return {
      ...serverFailure(error, text, 'rolled_back', placeOf(statement)),
      isAlone: statement === 0,
    };
  }
  if (statement > 0) return serverFailure(error, text, 'partial', { statement });
  const ofWrite = isUnknown ? 'unknown' : mayRemainInPart(effect) ? 'partial' : 'failed';
  return { ...serverFailure(error, text, text.isReadOnly ? 'failed' : ofWrite), isAlone: true };
}

function placeOf(statement: number): { readonly statement: number } | null {
  return statement === 0 ? null : { statement };
}

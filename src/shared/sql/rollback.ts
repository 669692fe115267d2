// Whether a ROLLBACK after an error undoes all that a request's statements did before it.
// Pure. Must not know how results arrive.
import { words } from './vocabulary.ts';

/** A statement that succeeded: its first keyword, and whether a transaction was open after it. */
export type Applied = { readonly verb: string; readonly inTransaction: boolean };

/** Statements that apply nothing to the data themselves and leave an open transaction open. */
const neutral = [
  '',
  ...words('SELECT VALUES TABLE SHOW SET USE DO EXPLAIN DESCRIBE DESC SAVEPOINT RELEASE ROLLBACK'),
];
/** Statements that change nothing while nothing was changed before them. */
const harmless = new Set([...neutral, 'BEGIN', 'START', 'COMMIT']);
/** Statements that commit nothing of what came before them, whether they succeed or fail. */
const neverCommitting = new Set([...neutral, 'INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'WITH']);
/** Statements that may have applied and committed a part of themselves when they fail. BEGIN: a block. */
const failsInPart = words('CALL EXECUTE DROP BEGIN IF CASE FOR WHILE LOOP REPEAT');

/** Whether a statement that begins with this word may have applied, and committed, a part of itself when it fails. */
export function mayFailInPart(verb: string): boolean {
  return failsInPart.has(verb);
}

/**
 * @param before the statements before the failed one, in order
 * @param failedVerb the first keyword of the statement that failed (DDL commits even when it fails); ''
 *   when it was not even understood
 * @see https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html
 */
export function rollbackUndoesAll(before: readonly Applied[], failedVerb: string): boolean {
  let changed = false;
  for (const { verb, inTransaction } of before) {
    if (verb === 'ROLLBACK' && !inTransaction) changed = false;
    else if (changed || !harmless.has(verb)) {
      if (!inTransaction || !neverCommitting.has(verb)) return false;
      changed = true;
    }
  }
  return changed ? neverCommitting.has(failedVerb) : !failsInPart.has(failedVerb);
}

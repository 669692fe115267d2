// Whether a ROLLBACK after an error undoes all that a request's statements did before it.
import { words } from './vocabulary.ts';

/** A statement that succeeded: its first keyword, and whether a transaction was open after it. */
export type Applied = { readonly verb: string; readonly inTransaction: boolean };

/** Statements that do not change data themselves and leave an open transaction open. */
const neutral = [
  '',
  ...words('SELECT VALUES TABLE SHOW SET USE DO EXPLAIN DESCRIBE DESC SAVEPOINT RELEASE ROLLBACK'),
];
/** Statements that change nothing if nothing was changed before them. */
const harmless = new Set([...neutral, 'BEGIN', 'START', 'COMMIT']);
/** Statements that do not commit earlier changes, whether they succeed or fail. */
const neverCommitting = new Set([...neutral, 'INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'WITH']);
/** Statements that may have committed a part of themselves when they fail. BEGIN is a block. */
const failsInPart = words('CALL EXECUTE DROP BEGIN IF CASE FOR WHILE LOOP REPEAT');

/** Whether a statement that begins with this word may have committed a part of itself when it fails. */
export function mayFailInPart(verb: string): boolean {
  return failsInPart.has(verb);
}

/**
 * @param before the statements before the failed one, in order
 * @param failedVerb the first keyword of the statement that failed (DDL commits even then); '' if it is a syntax error
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

// Whether a ROLLBACK after an error undoes all that a request's statements did before it.
// Pure. Must not know how results arrive.

/** A statement that succeeded: its first keyword, and whether a transaction was open after it. */
export type Applied = { readonly verb: string; readonly inTransaction: boolean };

/** Statements that apply nothing to the data themselves. */
const harmless = new Set([
  '',
  'BEGIN',
  'START',
  'ROLLBACK',
  'SAVEPOINT',
  'RELEASE',
  'SELECT',
  'SHOW',
  'SET',
  'USE',
  'DO',
  'EXPLAIN',
  'DESCRIBE',
  'DESC',
]);

/** Statements that, when they fail, have committed nothing of what came before them. */
const neverCommitting = new Set(['INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'WITH', ...harmless]);

/** Statements that commit the transaction they are run in, and open another. */
const committing = new Set(['BEGIN', 'START']);

/**
 * @param before the statements before the failed one, in order
 * @param failedVerb the first keyword of the statement that failed: DDL commits even when it fails
 * @see https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html
 */
export function rollbackUndoesAll(before: readonly Applied[], failedVerb: string): boolean {
  let hasOpenChanges = false;
  for (const { verb, inTransaction } of before) {
    const changes = !harmless.has(verb);
    // A transaction that has ended since, or ends here, has taken its changes with it.
    if (verb === 'ROLLBACK') hasOpenChanges &&= inTransaction;
    else if (hasOpenChanges && (!inTransaction || committing.has(verb))) return false;
    if (changes && !inTransaction) return false;
    hasOpenChanges ||= changes;
  }
  return !hasOpenChanges || neverCommitting.has(failedVerb);
}

// Whether a statement's text tells that it has no rows to give, or several results: then its reply can only be JSON.
// Pure. Must not know what replies look like.
import type { Analysis } from '../../../shared/sql/analyse.ts';

/** Statements that never have columns. What is not among them may have some: it is seen when they come. */
const withoutColumns: ReadonlySet<string> = new Set([
  ...['INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'LOAD', 'IMPORT', 'DO', 'SET', 'USE', 'KILL'],
  ...['CREATE', 'ALTER', 'DROP', 'TRUNCATE', 'RENAME', 'GRANT', 'REVOKE', 'FLUSH', 'RESET'],
  ...['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'LOCK', 'UNLOCK'],
  ...['PREPARE', 'DEALLOCATE', 'INSTALL', 'UNINSTALL', 'PURGE', 'CHANGE'],
]);

/** A word of MariaDB's that gives a write columns. It may stand in a literal: then columns are waited for in vain. */
const returning = /\breturning\b/i;

/** Whether the reply to one statement can be nothing but JSON, as far as its text tells. */
export function isJsonOnly({ sql, statements: [statement] }: Analysis): boolean {
  if (statement === undefined) return false;
  if (statement.isCall) return true;
  return withoutColumns.has(statement.verb) && !returning.test(sql);
}

// Whether a ROLLBACK undoes writes to tables, as the server itself says: base tables of an engine with transactions, without triggers.
// Must not know what is written.
import { fetchRows } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { encodeLiteral } from '../../shared/sql/literal.ts';
import type { TableName } from '../../shared/sql/table-names.ts';

/** Longer than a name may be. */
const mostLiteralBytes = 1024;

/** Asks on a session, outside of any transaction. Rejects when the connection is lost or the server refuses. */
export async function areUndoable(
  connection: Connection,
  tables: readonly TableName[],
): Promise<boolean> {
  for (const { schema, name } of tables) {
    const table = literal(name);
    const home = schema === null ? 'DATABASE()' : literal(schema);
    if (table === null || home === null) return false;
    if (!(await isUndoable(connection, home, table))) return false;
  }
  return true;
}

/** Names that differ in their case only are asked for together: all of them must be. */
async function isUndoable(connection: Connection, home: string, name: string): Promise<boolean> {
  const [counts] = await fetchRows(
    connection,
    `SELECT COUNT(*), COALESCE(SUM(TABLE_TYPE = 'BASE TABLE' AND ENGINE IN
       (SELECT e.ENGINE FROM information_schema.ENGINES e WHERE e.TRANSACTIONS = 'YES')), 0),
       (SELECT COUNT(*) FROM information_schema.TRIGGERS
         WHERE EVENT_OBJECT_SCHEMA = ${home} AND EVENT_OBJECT_TABLE = ${name})
     FROM information_schema.TABLES WHERE TABLE_SCHEMA = ${home} AND TABLE_NAME = ${name}`,
  );
  const [found, good, triggers] = (counts ?? []).map(Number);
  return found !== undefined && found > 0 && good === found && triggers === 0;
}

function literal(name: string): string | null {
  const encoded = encodeLiteral(name, mostLiteralBytes);
  return encoded.ok ? encoded.sql : null;
}

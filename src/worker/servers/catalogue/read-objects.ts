// Reads the tables, views and triggers of a server, and what they lead to.
import { fetchRows, readRows } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { builtInsOf } from '../../../shared/sql/vocabulary.ts';
import { forgetFoundRows } from '../pool/session.ts';
import { StoredObjects } from './stored-objects.ts';

/** More than the catalogue keeps of any database: a longer answer is a fault of the server. */
const maxBytes = 256 * 1024 * 1024;

const rulesSql = 'SELECT DATABASE(), @@lower_case_table_names';
/** Schemas that the catalogue does not trust, or does not need. */
const exceptSystem = "NOT IN ('information_schema', 'performance_schema', 'sys')";
const enginesSql = "SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'";
const tablesSql = `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES
  WHERE TABLE_SCHEMA ${exceptSystem}`;
const viewsSql = `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS
  WHERE TABLE_SCHEMA ${exceptSystem}`;
const triggersSql = `SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, ACTION_STATEMENT
  FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA ${exceptSystem}`;

/**
 * Reads all objects at once, and leaves no row count and no warning in the session. Rejects if the connection is lost or the server refuses:
 * then the session must be reset.
 */
export async function readObjects(connection: Connection): Promise<StoredObjects> {
  const [rules] = await fetchRows(connection, rulesSql);
  const objects = new StoredObjects({
    ownSchema: rules?.[0] ?? '',
    ignoresCase: rules?.[1] !== '0',
    builtIns: builtInsOf(connection.flavour, connection.serverVersion),
  });
  const engines = new Set((await fetchRows(connection, enginesSql)).map(([engine]) => engine));
  const read = (sql: string, add: (...cells: [string, string, string, string | null]) => void) =>
    readRows(connection, sql, maxBytes, ([schema, name, text, more]) =>
      add(schema ?? '', name ?? '', text ?? '', more ?? null),
    );
  await Promise.all([
    read(tablesSql, (schema, name, type, engine) =>
      objects.addTable(schema, name, type, engines.has(engine)),
    ),
    read(viewsSql, (schema, name, definition) => objects.addView(schema, name, definition)),
    read(triggersSql, (schema, table, body) => objects.addTrigger(schema, table, body)),
    fetchRows(connection, forgetFoundRows),
  ]);
  return objects;
}

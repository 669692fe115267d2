// Reads the tables, views and triggers that the account may see, on a session that is lent for it.
// Must not know when, nor what they are wanted for.
import { fetchRows, readRows } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { builtInsOf } from '../../shared/sql/vocabulary.ts';
import { forgetFoundRows } from '../backend/session.ts';
import { StoredObjects } from './stored-objects.ts';

/** More than what is remembered of any database: beyond it the server is no server. */
const mostBytes = 256 * 1024 * 1024;

const rulesSql = 'SELECT DATABASE(), @@lower_case_table_names';
/** Of these schemas nothing is believed, or nothing needs to be looked up. */
const exceptSystem = "NOT IN ('information_schema', 'performance_schema', 'sys')";
const tablesSql = `SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES
  WHERE TABLE_SCHEMA ${exceptSystem}`;
const viewsSql = `SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS
  WHERE TABLE_SCHEMA ${exceptSystem}`;
const triggersSql = `SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE, ACTION_STATEMENT
  FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA ${exceptSystem}`;

/**
 * Asks for all of them in one go, and leaves the session as it was: neither a count of rows nor a warning stays.
 * Rejects when the connection is lost or the server refuses: then the session must be reset.
 */
export async function readObjects(connection: Connection): Promise<StoredObjects> {
  const [rules] = await fetchRows(connection, rulesSql);
  const objects = new StoredObjects({
    ownSchema: rules?.[0] ?? '',
    ignoresCase: rules?.[1] !== '0',
    builtIns: builtInsOf(connection.flavour, connection.serverVersion),
  });
  const read = (sql: string, add: (schema: string, name: string, text: string) => void) =>
    readRows(connection, sql, mostBytes, ([schema, name, text]) =>
      add(schema ?? '', name ?? '', text ?? ''),
    );
  await Promise.all([
    read(tablesSql, (...table) => objects.addTable(...table)),
    read(viewsSql, (...view) => objects.addView(...view)),
    read(triggersSql, (...trigger) => objects.addTrigger(...trigger)),
    fetchRows(connection, forgetFoundRows),
  ]);
  return objects;
}

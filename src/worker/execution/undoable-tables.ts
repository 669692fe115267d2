// Whether a ROLLBACK undoes writes to tables. It asks the server: they, and all that their views and triggers write to, must be base tables
// of an engine with transactions.
import { fetchRows } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { encodeLiteral } from '../../shared/sql/literal.ts';
import { readProcedureBody } from '../../shared/sql/routines.ts';
import type { TableName } from '../../shared/sql/table-names.ts';
import { builtInsOf } from '../../shared/sql/vocabulary.ts';
import { readObjects } from '../servers/catalogue/read-objects.ts';

/** More than a name may have. */
const maxLiteralBytes = 1024;

/** Tables and procedures that a statement uses. */
export type Writes = {
  readonly tables: readonly TableName[];
  /** Tables that are only read: unless one is a view, they change nothing. Missing: none. */
  readonly reads?: readonly TableName[];
  /** Procedures that are called; missing: none. */
  readonly procedures?: readonly TableName[];
};

/**
 * Asks on a session, outside of any transaction: what a worker's catalogue knows may be of another server, or nothing at this moment. Rejects
 * if the connection is lost or the server refuses.
 */
export async function areUndoable(
  connection: Connection,
  { tables, reads = [], procedures = [] }: Writes,
): Promise<boolean> {
  let leadFurther = false;
  for (const table of tables) {
    const counts = await countTables(connection, table);
    if (counts === null || counts.good + counts.views < counts.found) return false;
    leadFurther ||= counts.views > 0 || counts.triggers > 0;
  }
  for (const table of reads) {
    const counts = await countTables(connection, table);
    if (counts === null) return false;
    leadFurther ||= counts.views > 0;
  }
  for (const procedure of procedures) {
    const written = await fetchWritten(connection, procedure);
    if (written === null || !(await areUndoable(connection, { tables: written }))) return false;
  }
  return !leadFurther || (await leadToUndoable(connection, tables, reads));
}

/** Follows views and triggers. Few tables have any, and the server's catalogue is large. */
async function leadToUndoable(
  connection: Connection,
  tables: readonly TableName[],
  reads: readonly TableName[],
): Promise<boolean> {
  const objects = await readObjects(connection);
  return objects.undoesWrites(tables) && objects.effectsOfReading(reads).isHarmless;
}

type Counts = {
  readonly found: number;
  /** Base tables whose engine has transactions. */
  readonly good: number;
  readonly triggers: number;
  readonly views: number;
};

/** Counts the tables with this name, in any case. Null: there is none. */
async function countTables(connection: Connection, table: TableName): Promise<Counts | null> {
  const [home, name] = literals(table);
  if (home === null || name === null) return null;
  const [counts] = await fetchRows(
    connection,
    `SELECT COUNT(*), COALESCE(SUM(TABLE_TYPE = 'BASE TABLE' AND ENGINE IN
       (SELECT e.ENGINE FROM information_schema.ENGINES e WHERE e.TRANSACTIONS = 'YES')), 0),
       (SELECT COUNT(*) FROM information_schema.TRIGGERS
         WHERE EVENT_OBJECT_SCHEMA = ${home} AND EVENT_OBJECT_TABLE = ${name}),
       COALESCE(SUM(TABLE_TYPE = 'VIEW'), 0)
     FROM information_schema.TABLES WHERE TABLE_SCHEMA = ${home} AND TABLE_NAME = ${name}`,
  );
  const [found = 0, good = 0, triggers = 0, views = 0] = (counts ?? []).map(Number);
  return found === 0 ? null : { found, good, triggers, views };
}

/** The tables that a procedure names, by their full names; null: it may change something else, or the account may not see it. */
async function fetchWritten(
  connection: Connection,
  procedure: TableName,
): Promise<readonly TableName[] | null> {
  const [home, name] = literals(procedure);
  if (home === null || name === null) return null;
  const rows = await fetchRows(
    connection,
    `SELECT ROUTINE_SCHEMA, ROUTINE_DEFINITION FROM information_schema.ROUTINES
      WHERE ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_SCHEMA = ${home} AND ROUTINE_NAME = ${name}`,
  );
  const [[schema, body] = []] = rows;
  if (rows.length !== 1 || schema === null || schema === undefined) return null;
  const builtIns = builtInsOf(connection.flavour, connection.serverVersion);
  const tables = readProcedureBody(body ?? '', builtIns);
  if (body === null || tables === null) return null;
  return tables.map((table) => ({ schema: table.schema ?? schema, name: table.name }));
}

function literals({ schema, name }: TableName): readonly [string | null, string | null] {
  return [schema === null ? 'DATABASE()' : literal(schema), literal(name)];
}

function literal(name: string): string | null {
  const encoded = encodeLiteral(name, maxLiteralBytes);
  return encoded.ok ? encoded.sql : null;
}

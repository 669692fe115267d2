// A table as the server describes it: its columns, its key, and how SQL names it.

import { type ColumnDescription, describeColumn } from '../../shared/mysql/column-types.ts';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { closePrepared, prepare } from '../../shared/mysql/prepare.ts';
import { encodeLiteral } from '../../shared/sql/literal.ts';

/** A table or a view of the connection's database. */
export type Table = {
  readonly name: string;
  /** Its name in SQL, in backticks if it needs them. */
  readonly sql: string;
  /** Whether statements can write to it: it is no view. */
  readonly isWritable: boolean;
  /** Whether a ROLLBACK undoes writes. */
  readonly hasTransactions: boolean;
  /** In their order, with those that `select *` leaves out. */
  readonly columns: readonly TableColumn[];
  /** The names of the columns of the primary key, or of another unique one without NULL; empty: there is none. */
  readonly key: readonly string[];
};

export type TableColumn = {
  readonly name: string;
  readonly sql: string;
  /** As cells are described. */
  readonly cells: ColumnDescription;
  /** As in CREATE TABLE: `int(11) unsigned`. */
  readonly type: string;
  /** The characters of a text, or the bytes of others; null: it is neither. */
  readonly maxLength: number | null;
  readonly isNullable: boolean;
  /** The server computes its values. */
  readonly isGenerated: boolean;
  readonly isAutoIncrement: boolean;
  /** The server sets it when an UPDATE changes its row and not the column itself (ON UPDATE). */
  readonly isUpdatedByServer: boolean;
  readonly fallback: ColumnDefault;
  /** The spatial reference system that its values must have; null: any. */
  readonly srid: string | null;
};

/** The value of a row that states none. `expression`: the server computes it. */
export type ColumnDefault =
  | { readonly kind: 'none' | 'null' | 'expression' }
  | { readonly kind: 'value'; readonly text: string };

/** Reads a table of the connection's database. Null: the account sees none of this name. Rejects if the connection is lost. */
export async function readTable(connection: Connection, name: string): Promise<Table | null> {
  const found = await findTable(connection, name);
  if (found === null) return null;
  const own = `TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ${literalOf(found.name)}`;
  const rows = await fetchRows(
    connection,
    `SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, IS_NULLABLE, EXTRA, COLUMN_DEFAULT
       FROM information_schema.COLUMNS WHERE ${own} ORDER BY ORDINAL_POSITION`,
  );
  const srids = await fetchSrids(connection, own);
  const names = rows.map(([column]) => column ?? '');
  const sql = await nameInSql(connection, found.name, (each) => `select 1 from ${each}`, null);
  const cells = await describeCells(connection, sql, names);
  if (cells === null) return null;
  const isMaria = await isMariaDb(connection);
  const columns = await Promise.all(
    cells.map(async (described, at): Promise<TableColumn> => {
      const [column, type, length, nullable, extra, initial] = rows[at] ?? [];
      const name = column ?? '';
      return {
        name,
        sql: await nameInSql(connection, name, (each) => `select ${each} from ${sql}`, name),
        cells: described,
        type: type ?? '',
        maxLength: length == null ? null : Number(length),
        isNullable: nullable === 'YES',
        isGenerated: /\bGENERATED\b/i.test((extra ?? '').replace(/DEFAULT_GENERATED/i, '')),
        isAutoIncrement: /auto_increment/i.test(extra ?? ''),
        isUpdatedByServer: /\bon update\b/i.test(extra ?? ''),
        fallback: readDefault(initial ?? null, {
          isBit: described.type === 'BIT',
          isNullable: nullable === 'YES',
          isMaria,
          extra: extra ?? '',
        }),
        srid: srids.get(name) ?? null,
      };
    }),
  );
  return {
    name: found.name,
    sql,
    isWritable: found.type === 'BASE TABLE' || found.type === 'SYSTEM VERSIONED',
    hasTransactions: /^(innodb|rocksdb|tokudb)$/i.test(found.engine),
    columns,
    key: await findKey(connection, own, columns),
  };
}

type FoundTable = { readonly name: string; readonly type: string; readonly engine: string };

/** The table of exactly this name, or the only one whose name differs in case. */
async function findTable(connection: Connection, name: string): Promise<FoundTable | null> {
  const rows = await fetchRows(
    connection,
    `SELECT TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES
      WHERE TABLE_SCHEMA = DATABASE() AND LOWER(TABLE_NAME) = LOWER(${literalOf(name)})`,
  );
  const exact = rows.find(([found]) => found === name);
  const [found, type, engine] = exact ?? (rows.length === 1 ? (rows[0] ?? []) : []);
  return found == null ? null : { name: found, type: type ?? '', engine: engine ?? '' };
}

async function isMariaDb(connection: Connection): Promise<boolean> {
  const [[version] = []] = await fetchRows(connection, 'SELECT VERSION()');
  return /mariadb/i.test(version ?? '');
}

/** Only MySQL restricts columns to a reference system. */
async function fetchSrids(
  connection: Connection,
  own: string,
): Promise<ReadonlyMap<string, string>> {
  try {
    const rows = await fetchRows(
      connection,
      `SELECT COLUMN_NAME, SRS_ID FROM information_schema.COLUMNS WHERE ${own} AND SRS_ID IS NOT NULL`,
    );
    return new Map(rows.map(([name, srid]) => [name ?? '', srid ?? '0']));
  } catch (error) {
    if (error instanceof RefusedError) return new Map();
    throw error;
  }
}

/** The cells of all columns; null: the account may not read them. */
async function describeCells(
  connection: Connection,
  table: string,
  names: readonly string[],
): Promise<readonly ColumnDescription[] | null> {
  const prepared = await prepare(connection, `select ${names.map(quote).join(', ')} from ${table}`);
  if (!prepared.ok) return null;
  await closePrepared(connection, [prepared.id]);
  return prepared.columns.map(describeColumn);
}

/**
 * The shortest way to write a name that the server takes for this name: a reserved word needs backticks, and a few others are functions.
 * @param column the column that must be found; null: the name is that of a table
 */
async function nameInSql(
  connection: Connection,
  name: string,
  textOf: (sql: string) => string,
  column: string | null,
): Promise<string> {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return quote(name);
  const prepared = await prepare(connection, textOf(name));
  if (!prepared.ok) return quote(name);
  await closePrepared(connection, [prepared.id]);
  const origin = prepared.columns[0]?.origin.originalName.toString();
  return column === null || origin === column ? name : quote(name);
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

function literalOf(text: string): string {
  const literal = encodeLiteral(text, Number.POSITIVE_INFINITY);
  if (!literal.ok) throw new Error('a text of the command line is no text');
  return literal.sql;
}

type DefaultFacts = {
  readonly isBit: boolean;
  readonly isNullable: boolean;
  readonly isMaria: boolean;
  /** EXTRA of the catalogue. */
  readonly extra: string;
};

/** MariaDB has the SQL of a default. MySQL has its text, and says beside it whether that is SQL. Both have `b'101'` for a BIT. */
function readDefault(
  initial: string | null,
  { isBit, isNullable, isMaria, extra }: DefaultFacts,
): ColumnDefault {
  if (initial === null) return { kind: isNullable ? 'null' : 'none' };
  const bits = isBit ? /^b'([01]+)'$/.exec(initial)?.[1] : undefined;
  if (bits !== undefined) return { kind: 'value', text: String(BigInt(`0b${bits}`)) };
  if (!isMaria) {
    const isSql = /DEFAULT_GENERATED/i.test(extra) || /^(current_timestamp|now)\b/i.test(initial);
    return isSql ? { kind: 'expression' } : { kind: 'value', text: initial };
  }
  if (initial === 'NULL') return { kind: 'null' };
  const quoted = /^'((?:[^'\\]|''|\\.)*)'$/s.exec(initial)?.[1];
  if (quoted !== undefined) return { kind: 'value', text: unquote(quoted) };
  return /^-?\d+(\.\d+)?$/.test(initial)
    ? { kind: 'value', text: initial }
    : { kind: 'expression' };
}

/** Escapes in MariaDB's defaults, whatever the sql_mode is. Any other character behind a backslash stands for itself. */
const escapes: Readonly<Record<string, string>> = { '0': '\0', n: '\n', r: '\r' };

function unquote(quoted: string): string {
  return quoted.replaceAll(/''|\\(.)/gs, (_, escaped?: string) =>
    escaped === undefined ? "'" : (escapes[escaped] ?? escaped),
  );
}

/** The primary key, or else the first unique one whose columns are whole and never NULL. */
async function findKey(
  connection: Connection,
  own: string,
  columns: readonly TableColumn[],
): Promise<readonly string[]> {
  const rows = await fetchRows(
    connection,
    `SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS
      WHERE ${own} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX`,
  );
  const keys = new Map<string, string[]>();
  const unfit = new Set<string>();
  for (const [index, column, part] of rows) {
    const found = columns.find(({ name }) => name === column);
    const key = index ?? '';
    if (found === undefined || found.isNullable || part !== null) unfit.add(key);
    keys.set(key, [...(keys.get(key) ?? []), column ?? '']);
  }
  return [...keys].find(([key]) => !unfit.has(key))?.[1] ?? [];
}

// The operator's table of idempotency keys: its name, the statement that creates it, and how a table differs from that.
import { fetchRows } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';

/** The table by its full name: a session may have another database. */
export type IdempotencyTable = {
  readonly schema: string;
  readonly name: string;
  /** The name as written in SQL. */
  readonly quoted: string;
};

/** The table that `idempotency_table` names. @param database its database, unless the name contains one */
export function parseIdempotencyTable(setting: string, database: string): IdempotencyTable {
  const [first = '', second] = setting.split('.');
  const [schema, name] = second === undefined ? [database, first] : [first, second];
  return { schema, name, quoted: `${quote(schema)}.${quote(name)}` };
}

type ColumnDefinition = {
  readonly name: string;
  readonly type: string;
  readonly isNullable: boolean;
};

/**
 * `id` and `request` are SHA-256 sums, `attempt` is random. If sql_mode is not strict, a BLOB would silently cut a reply at 64 KiB.
 * `created` is the gateway's time in UTC: a client may set the session's `timestamp`.
 */
const definitions: readonly ColumnDefinition[] = [
  { name: 'id', type: 'binary(32)', isNullable: false },
  { name: 'request', type: 'binary(32)', isNullable: false },
  { name: 'attempt', type: 'binary(16)', isNullable: false },
  { name: 'reply', type: 'mediumblob', isNullable: true },
  { name: 'created', type: 'datetime(3)', isNullable: false },
];

/** The statement that creates it, with a semicolon. */
export function describeCreation({ quoted }: IdempotencyTable): string {
  const columns = definitions.map(
    ({ name, type, isNullable }) => `  ${name} ${type}${isNullable ? '' : ' NOT NULL'}`,
  );
  const keys = ['  PRIMARY KEY (id)', '  KEY created (created)'];
  return `CREATE TABLE ${quoted} (\n${[...columns, ...keys].join(',\n')}\n) ENGINE=InnoDB;`;
}

/** How the catalogue describes a table, as rows of text. */
export type TableDescription = {
  /** Type and engine; undefined: the account sees no such table. */
  readonly table: Cells | undefined;
  /** Name, type, whether nullable, default, extra. */
  readonly columns: readonly Cells[];
  /** Index, column, position in the index, whether values may repeat, length of a prefix. */
  readonly keys: readonly Cells[];
  /** The names that the account may see. */
  readonly triggers: readonly Cells[];
};

/** Without transactions, a key would remain after its work was undone. */
const rightEngine = 'InnoDB';

type Cells = readonly (string | null)[];

/**
 * Why a table cannot be used, in words; none: it can. Asks on a session outside of any transaction; rejects when the connection is lost,
 * or the server refuses.
 */
export async function findTableFaults(
  connection: Connection,
  table: IdempotencyTable,
): Promise<readonly string[]> {
  return findDifferences(await fetchDescription(connection, table));
}

/** ER_DATA_OUT_OF_RANGE: the error of `writeEngineProof` for a table of another engine, or one that the account does not see. */
export const otherEngine = 1690;

/**
 * A statement that fails unless the table has the right engine. It adds to the largest BIGINT, which every sql_mode refuses, and not with
 * DO, which succeeds in any case.
 */
export function writeEngineProof({ schema, name }: IdempotencyTable): string {
  const where = `TABLE_SCHEMA = ${literal(schema)} AND TABLE_NAME = ${literal(name)}`;
  const engine = `(SELECT ENGINE FROM information_schema.TABLES WHERE ${where})`;
  const isRight = `${engine} <=> x'${Buffer.from(rightEngine).toString('hex')}'`;
  return `SELECT 9223372036854775807 + IF(${isRight}, 0, 1)`;
}

async function fetchDescription(
  connection: Connection,
  table: IdempotencyTable,
): Promise<TableDescription> {
  const [schema, name] = [literal(table.schema), literal(table.name)];
  const where = `TABLE_SCHEMA = ${schema} AND TABLE_NAME = ${name}`;
  const ask = (what: string) => fetchRows(connection, `SELECT ${what}`);
  const [found] = await ask(`TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE ${where}`);
  const columns = await ask(
    `COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA
       FROM information_schema.COLUMNS WHERE ${where} ORDER BY ORDINAL_POSITION`,
  );
  const keys = await ask(
    `INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX, NON_UNIQUE, SUB_PART
       FROM information_schema.STATISTICS WHERE ${where} ORDER BY INDEX_NAME, SEQ_IN_INDEX`,
  );
  const triggers = await ask(
    `TRIGGER_NAME FROM information_schema.TRIGGERS
      WHERE EVENT_OBJECT_SCHEMA = ${schema} AND EVENT_OBJECT_TABLE = ${name} ORDER BY TRIGGER_NAME`,
  );
  return { table: found, columns, keys, triggers };
}

/** The differences from the table that `describeCreation` creates, in words. Harmless additions are ignored. */
export function findDifferences({
  table,
  columns,
  keys,
  triggers,
}: TableDescription): readonly string[] {
  if (table === undefined) return ['it does not exist, or the account may not see it'];
  const [kind, engine] = table;
  if (kind !== 'BASE TABLE') return [`it is not a base table: ${kind}`];
  return [
    ...(engine === rightEngine ? [] : [`its engine is ${engine}, not InnoDB`]),
    ...findColumnFaults(columns),
    ...findKeyFaults(keys),
    ...triggers.map(([name]) => `it has a trigger, ${name}`),
  ];
}

function findColumnFaults(columns: readonly Cells[]): readonly string[] {
  // An account with only the DELETE privilege sees the table, but no columns.
  if (columns.length === 0) return ['the account may not see its columns'];
  const faults: string[] = [];
  for (const definition of definitions) {
    const { name, type, isNullable } = definition;
    const found = columns.find((column) => isNamed(column, definition));
    const wanted = describeColumn(type, isNullable, '');
    if (found === undefined) {
      faults.push(`the column ${name} is missing, or the account may not see it`);
      continue;
    }
    const [, actualType, nullable, , extra] = found;
    const actual = describeColumn(actualType, nullable === 'YES', extra);
    if (actual !== wanted) faults.push(`the column ${name} is ${actual}, not ${wanted}`);
  }
  const others = columns.filter((column) => !definitions.some((one) => isNamed(column, one)));
  for (const [column, , nullable, initial, extra] of others) {
    const isFilled = /auto_increment|generated/i.test(extra ?? '');
    if (nullable === 'NO' && initial === null && !isFilled)
      faults.push(`the column ${column} is none of the gateway's, and has no default`);
  }
  return faults;
}

/** Column names ignore case. */
function isNamed([column]: Cells, { name }: ColumnDefinition): boolean {
  return column?.toLowerCase() === name;
}

/** Includes what changes values (`on update`, generated columns). A default has no effect here. */
function describeColumn(
  type: string | null | undefined,
  isNullable: boolean,
  extra: string | null | undefined,
): string {
  const more = (extra ?? '').toLowerCase().replace('default_generated', '').trim();
  return [type, ...(isNullable ? [] : ['NOT NULL']), ...(more === '' ? [] : [more])].join(' ');
}

function findKeyFaults(keys: readonly Cells[]): readonly string[] {
  const columnOf = ([, column]: Cells) => column?.toLowerCase();
  const primary = keys.filter(([name]) => name === 'PRIMARY');
  const [first] = primary;
  const isWhole = primary.length === 1 && first?.[4] === null && columnOf(first) === 'id';
  const isIndexed = keys.some((key) => columnOf(key) === 'created' && key[2] === '1');
  const others = keys.filter(([name, , , mayRepeat]) => mayRepeat === '0' && name !== 'PRIMARY');
  const names = new Set(others.map(([name]) => name));
  return [
    ...(isWhole ? [] : ['its primary key is not (id)']),
    ...(isIndexed ? [] : ['it has no index on created']),
    ...[...names].map((name) => `it has a further unique index, ${name}`),
  ];
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** In hexadecimal, which every sql_mode reads alike, and in the catalogue's character set: otherwise MariaDB reads the whole catalogue. */
function literal(name: string): string {
  return `CONVERT(0x${Buffer.from(name).toString('hex')} USING utf8mb3)`;
}

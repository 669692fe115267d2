// The operator's table in which idempotency keys are kept: its name, the statement that creates it, and what differs from it.
// Must not know when a row is written.
import { fetchRows } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';

/** A table by its full name: a statement may have another database as its own. */
export type LedgerTable = {
  readonly schema: string;
  readonly name: string;
  /** As it stands in SQL. */
  readonly quoted: string;
};

/** The table that `idempotency_table` names. @param database where it is, unless the name says */
export function parseLedgerTable(setting: string, database: string): LedgerTable {
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
 * `id` and `request` are SHA-256 sums, `attempt` is random. A BLOB would cut a reply at 64 KiB without a word where sql_mode is not
 * strict. `created` is the gateway's time in UTC: the session's `timestamp` may be anything.
 */
const definitions: readonly ColumnDefinition[] = [
  { name: 'id', type: 'binary(32)', isNullable: false },
  { name: 'request', type: 'binary(32)', isNullable: false },
  { name: 'attempt', type: 'binary(16)', isNullable: false },
  { name: 'reply', type: 'mediumblob', isNullable: true },
  { name: 'created', type: 'datetime(3)', isNullable: false },
];

/** The statement that creates it, ended by a semicolon. */
export function describeCreation({ quoted }: LedgerTable): string {
  const columns = definitions.map(
    ({ name, type, isNullable }) => `  ${name} ${type}${isNullable ? '' : ' NOT NULL'}`,
  );
  const keys = ['  PRIMARY KEY (id)', '  KEY created (created)'];
  return `CREATE TABLE ${quoted} (\n${[...columns, ...keys].join(',\n')}\n) ENGINE=InnoDB;`;
}

/**
 * What keeps a table from being used, in words; none: it can be. Asks on a session outside of any transaction; rejects when the
 * connection is lost, or the server refuses.
 */
export async function findTableFaults(
  connection: Connection,
  table: LedgerTable,
): Promise<readonly string[]> {
  const where = `TABLE_SCHEMA = ${literal(table.schema)} AND TABLE_NAME = ${literal(table.name)}`;
  const [found] = await fetchRows(
    connection,
    `SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE ${where}`,
  );
  if (found === undefined) return ['it does not exist, or the account may not see it'];
  const columns = await fetchRows(
    connection,
    `SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA
       FROM information_schema.COLUMNS WHERE ${where} ORDER BY ORDINAL_POSITION`,
  );
  const keys = await fetchRows(
    connection,
    `SELECT INDEX_NAME, COLUMN_NAME, SEQ_IN_INDEX, NON_UNIQUE, SUB_PART FROM information_schema.STATISTICS WHERE ${where}
      ORDER BY INDEX_NAME, SEQ_IN_INDEX`,
  );
  return [...findKindFaults(found), ...findColumnFaults(columns), ...findKeyFaults(keys)];
}

type Cells = readonly (string | null)[];

/** Without transactions a key would stay whose work was undone. */
function findKindFaults([type, engine]: Cells): readonly string[] {
  if (type !== 'BASE TABLE') return ['it is no base table'];
  return engine === 'InnoDB' ? [] : [`its engine is ${engine}, not InnoDB`];
}

function findColumnFaults(columns: readonly Cells[]): readonly string[] {
  const faults: string[] = [];
  for (const { name, type, isNullable } of definitions) {
    const found = columns.find(([column]) => column === name);
    const wanted = `${type}${isNullable ? '' : ' NOT NULL'}`;
    const actual = `${found?.[1]}${found?.[2] === 'YES' ? '' : ' NOT NULL'}`;
    if (found === undefined) faults.push(`the column ${name} is missing`);
    else if (actual !== wanted) faults.push(`the column ${name} is ${actual}, not ${wanted}`);
  }
  const others = columns.filter(([column]) => !definitions.some(({ name }) => name === column));
  for (const [column, , nullable, initial, extra] of others) {
    const needsValue = nullable === 'NO' && initial === null && extra === '';
    if (needsValue)
      faults.push(`the column ${column} is none of the gateway's, and has no default`);
  }
  return faults;
}

function findKeyFaults(keys: readonly Cells[]): readonly string[] {
  const primary = keys.filter(([name]) => name === 'PRIMARY');
  const isWhole = primary.length === 1 && primary[0]?.[1] === 'id' && primary[0][4] === null;
  const isIndexed = keys.some(([, column, position]) => column === 'created' && position === '1');
  const others = keys.filter(([name, , , mayRepeat]) => mayRepeat === '0' && name !== 'PRIMARY');
  return [
    ...(isWhole ? [] : ['its primary key is not (id)']),
    ...(isIndexed ? [] : ['it has no index on created']),
    ...(others.length === 0 ? [] : [`it has a further unique index, ${others[0]?.[0]}`]),
  ];
}

function quote(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

/** In hexadecimal, which every sql_mode reads alike. */
function literal(name: string): string {
  return `CONVERT(0x${Buffer.from(name).toString('hex')} USING utf8mb4)`;
}

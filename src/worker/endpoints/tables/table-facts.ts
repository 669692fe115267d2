// The facts of `describe`: a list of tables, or one table with its columns, indexes and foreign keys. The statements that ask the server
// for them, and the results that are made of the rows. Pure.

/** Lists the tables and views, if the worker's catalogue does not know them at present. */
export const tablesSql =
  "SELECT TABLE_NAME, TABLE_TYPE LIKE '%VIEW%' FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME";

/** The condition that names the table, in each part of the statement. */
const here = 'TABLE_SCHEMA = DATABASE() AND TABLE_NAME = :table';

/**
 * All that is known of one table, as rows of one shape: a letter for the kind of fact, a number that orders them, and six texts. MySQL and
 * MariaDB have these tables in common. They show what the account may see.
 */
export const tableSql = `
SELECT 't' AS kind, 0 AS place, TABLE_NAME AS a, TABLE_TYPE AS b, ENGINE AS c, TABLE_ROWS AS d, TABLE_COMMENT AS e, NULL AS f
  FROM information_schema.TABLES WHERE ${here}
UNION ALL SELECT 'c', ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT
  FROM information_schema.COLUMNS WHERE ${here}
UNION ALL SELECT 'i', SEQ_IN_INDEX, INDEX_NAME, COLUMN_NAME, NON_UNIQUE, SUB_PART, INDEX_TYPE, NULL
  FROM information_schema.STATISTICS WHERE ${here}
UNION ALL SELECT 'f', ORDINAL_POSITION, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME, NULL
  FROM information_schema.KEY_COLUMN_USAGE WHERE ${here} AND REFERENCED_TABLE_NAME IS NOT NULL
UNION ALL SELECT 'r', ORDINAL_POSITION, CONSTRAINT_NAME, REFERENCED_COLUMN_NAME, TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, NULL
  FROM information_schema.KEY_COLUMN_USAGE
  WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME = :table`;

type Cell = string | number | null;
type Fact = readonly [kind: string, place: Cell, ...texts: Cell[]];
type Grid = { readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] };

/** Longer comments are cut. In characters. */
const maxComment = 200;

/**
 * The list of tables as JSON. Names beyond the limit of bytes are left out.
 * @param filter a part of the names, in any case; null: all
 * @param sections listed beside them; null: none are
 */
export function describeTables(
  tables: readonly { readonly name: string; readonly isView: boolean }[],
  filter: string | null,
  maxBytes: number,
  sections: readonly string[] | null,
): string {
  const part = filter?.toLowerCase() ?? '';
  const wanted = tables.filter(({ name }) => name.toLowerCase().includes(part));
  const rows = wanted.map(({ name, isView }) => [name, isView ? 'view' : 'table']);
  const shown = rows.slice(0, countWithin(rows, maxBytes));
  return JSON.stringify({
    columns: ['table', 'kind'],
    rows: shown,
    row_count: shown.length,
    total: rows.length,
    truncated: shown.length < rows.length,
    ...(sections !== null && { sections }),
  });
}

/** One table as JSON; null: there is no such table. Columns beyond the limit of bytes are left out. @param rows those of `tableSql` */
export function describeTable(
  rows: readonly (readonly unknown[])[],
  maxBytes: number,
): string | null {
  const facts = rows as readonly Fact[];
  const of = (kind: string) => facts.filter((fact) => fact[0] === kind);
  const [table] = of('t');
  if (table === undefined) return null;
  const [, , name, type, engine, estimate, comment] = table;
  const isView = String(type).includes('VIEW');
  const columns = of('c')
    .sort((one, other) => Number(one[1]) - Number(other[1]))
    .map(([, , column, columnType, nullable, initial, extra, text]) => [
      column,
      columnType,
      nullable === 'YES',
      // MariaDB's word for the default of a column without one.
      nullable === 'YES' && initial === 'NULL' ? null : (initial ?? null),
      extra,
      short(text),
    ]);
  const indexes = groupByName(of('i')).map(([index, parts]) => {
    const [, , , , nonUnique, , kind] = parts[0] as Fact;
    return [index, Number(nonUnique) === 0, parts.map(describePart), kind];
  });
  const shown = columns.slice(0, countWithin(columns, maxBytes));
  return JSON.stringify({
    table: name,
    kind: isView ? 'view' : 'table',
    engine: engine ?? undefined,
    comment: isView ? '' : short(comment),
    estimated_rows: isView ? null : Number(estimate ?? 0),
    columns: {
      columns: ['name', 'type', 'nullable', 'default', 'extra', 'comment'],
      rows: shown,
    } satisfies Grid,
    truncated: shown.length < columns.length,
    primary_key: indexes.find(([index]) => index === 'PRIMARY')?.[2] ?? null,
    indexes: { columns: ['name', 'unique', 'columns', 'type'], rows: indexes } satisfies Grid,
    foreign_keys: {
      columns: ['name', 'columns', 'references', 'referenced_columns'],
      rows: groupByName(of('f')).map(describeKey),
    } satisfies Grid,
    referenced_by: {
      columns: ['name', 'columns', 'table', 'its_columns'],
      rows: groupByName(of('r')).map(describeKey),
    } satisfies Grid,
  });
}

/** How many rows fit into so many bytes of JSON. */
function countWithin(rows: readonly (readonly unknown[])[], maxBytes: number): number {
  let bytes = 0;
  let count = 0;
  for (const row of rows) {
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1;
    if (bytes > maxBytes) break;
    count += 1;
  }
  return count;
}

/** The parts of each index or key, in their order. Keys of different tables may have the same name. */
function groupByName(facts: readonly Fact[]): readonly (readonly [string, readonly Fact[]])[] {
  const groups = new Map<string, Fact[]>();
  for (const fact of facts) {
    const isIndex = fact[0] === 'i';
    const key = isIndex ? String(fact[2]) : JSON.stringify([fact[2], fact[4], fact[5]]);
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(fact);
  }
  return [...groups.values()].map((group) => {
    group.sort((one, other) => Number(one[1]) - Number(other[1]));
    return [String((group[0] as Fact)[2]), group] as const;
  });
}

/** A column of an index, with the length of its prefix. MySQL has no column for an expression. */
function describePart([, , , column, , length]: Fact): string {
  const name = column === null ? '(expression)' : String(column);
  return length === null ? name : `${name}(${length})`;
}

function describeKey([name, parts]: readonly [string, readonly Fact[]]): readonly unknown[] {
  const [, , , , , other] = parts[0] as Fact;
  return [name, parts.map((part) => part[3]), other, parts.map((part) => part[6])];
}

function short(text: Cell | undefined): string {
  const whole = text === null || text === undefined ? '' : String(text);
  return whole.length > maxComment ? `${whole.slice(0, maxComment)}…` : whole;
}

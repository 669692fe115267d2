// Statements for a table to start from, as the text of a file: by key, a page, insert, update, delete. Pure.
import { parseFile } from '../../shared/named/parse-file.ts';
import { keyArgument } from '../../shared/named/statement.ts';
import type { Table, TableColumn } from './table.ts';

/** One statement of the text. */
export type Scaffold = { readonly name: string; readonly text: string };

/** The settings of the section on which the statements depend. */
export type ScaffoldFacts = {
  readonly hasKeys: boolean;
  readonly isReadOnly: boolean;
  /** The clients that may call named statements. Null: there is no file of clients, so `default` is the only one. */
  readonly clients: readonly string[] | null;
};

/** A column and the parameter that stands for it. */
type Bound = {
  readonly column: TableColumn;
  readonly parameter: string;
  /** The type of the parameter. */
  readonly type: string;
};

/** The text before the statements. */
export function writeScaffoldHead({ name }: Table, { clients }: ScaffoldFacts): string {
  const shown = name.replaceAll(/\s+/g, ' ');
  return [
    `-- Statements for the table ${shown}, to start from. Edit them, and delete those that you do not need.`,
    clients === null
      ? '-- So far only the client `default` may call them: write the names of your clients in its place.'
      : '-- Every client with the permission `named` may call them: delete the names of those that must not.',
  ].join('\n');
}

/** Writes the statements, in the order of the file. */
export function writeScaffold(table: Table, facts: ScaffoldFacts): readonly Scaffold[] {
  const bound = bindColumns(table);
  const keyed = table.key.flatMap((name) => bound.filter(({ column }) => column.name === name));
  const base = nameFor(table.name, maxBaseLength, 't');
  const writes = table.isWritable && !facts.isReadOnly;
  const all = { table, base, bound, keyed, client: lineOfClients(facts), facts };
  return [
    ...(keyed.length > 0 ? [writeByKey(all), writePage(all)] : [writeFirst(all)]),
    ...(writes ? [writeInsert(all)] : []),
    ...(writes && keyed.length > 0 ? [...writeUpdate(all), writeDelete(all)] : []),
  ];
}

type All = {
  readonly table: Table;
  /** The beginning of the statements' names. */
  readonly base: string;
  readonly bound: readonly Bound[];
  /** Those of the key; empty: there is none. */
  readonly keyed: readonly Bound[];
  /** The line with the clients that may call a statement. */
  readonly client: string;
  readonly facts: ScaffoldFacts;
};

const maxNameLength = 40;
const maxBaseLength = 24;
const pageSize = '-- param page_size: int(1..100) = 20';

/** `*` stands for all clients with the permission, if there are none yet. */
function lineOfClients({ clients }: ScaffoldFacts): string {
  const names = clients ?? ['default'];
  return `-- for: ${names.length === 0 ? '*' : names.join(', ')}`;
}

function statement(
  name: string,
  kind: string,
  head: readonly string[],
  sql: readonly string[],
): Scaffold {
  const lines = [`-- name: ${name} :${kind}`, ...head, ...sql];
  return { name, text: `${lines.join('\n')};` };
}

function writeByKey({ table, base, bound, keyed, client }: All): Scaffold {
  const [first] = keyed;
  const suffix = keyed.length === 1 && first !== undefined ? first.parameter : 'key';
  const full = `${base}_by_${suffix}`;
  return statement(
    full.length > maxNameLength ? `${base}_by_key` : full,
    'one',
    ['-- One row.', client, ...keyed.map((one) => parameterOf(one))],
    [...selectOf(table, bound), ...whereKey(keyed)],
  );
}

/** A row of the page before is the place at which a page begins. */
function writePage({ table, base, bound, keyed, client }: All): Scaffold {
  const names = keyed.map(({ column }) => column.name.replaceAll(/\s+/g, ' ')).join(', ');
  const after = keyed.map((one) => ({
    sql: orderOf(one.column),
    parameter: `after_${one.parameter}`.slice(0, maxNameLength),
    type: one.type,
  }));
  const [first] = after;
  const conditions = after.map(({ sql, parameter }, at) => {
    const equal = after.slice(0, at).map((one) => `${one.sql} = :${one.parameter}`);
    const all = [...equal, `${sql} > :${parameter}`].join(' and ');
    return after.length === 1 || at === 0 ? all : `(${all})`;
  });
  const order = after.map(({ sql }) => sql).join(', ');
  return statement(
    `${base}_page`,
    'many',
    [
      `-- Rows by ${names}, page by page: a page begins behind the last row of the page before.`,
      client,
      ...after.map(({ parameter, type }) => `-- param ${parameter}: ${type} = null`),
      pageSize,
    ],
    [
      ...selectOf(table, bound),
      ` where :${first?.parameter} is null`,
      ...conditions.map((one) => `    or ${one}`),
      ` order by ${order}`,
      ' limit :page_size',
    ],
  );
}

/** Without a key there is no place at which a page could begin. */
function writeFirst({ table, base, bound, client }: All): Scaffold {
  return statement(
    `${base}_rows`,
    'many',
    ['-- Some rows. There is no key by which they could be read page by page.', client, pageSize],
    [...selectOf(table, bound), ' limit :page_size'],
  );
}

function writeInsert({ table, base, bound, client, facts }: All): Scaffold {
  const given = bound.filter(
    ({ column: { isGenerated, isAutoIncrement, fallback } }) =>
      !isGenerated && !isAutoIncrement && fallback.kind !== 'expression',
  );
  // The table has the default of a column that is left out.
  const lines = given.flatMap((one) => {
    const fallback = fallbackOf(one);
    return fallback.kind === 'of the table' ? [] : [{ one, fallback: fallback.literal }];
  });
  const isNumbered = bound.some(({ column }) => column.isAutoIncrement);
  const isKeyed = facts.hasKeys && isNumbered && table.hasTransactions;
  const columns = lines.map(({ one }) => one.column.sql);
  const values = lines.map(({ one }) => bindingOf(one));
  return statement(
    `${base}_insert`,
    'exec',
    [
      isKeyed ? '-- Inserts a row, and only one for each Idempotency-Key.' : '-- Inserts a row.',
      client,
      ...(isKeyed ? ['-- key: required'] : []),
      ...lines.map(({ one, fallback }) => parameterOf(one, fallback)),
      '-- error 1062: 409 ALREADY_EXISTS There is such a row already.',
    ],
    [...wrap(`insert into ${table.sql} (`, columns, ')', 2), ...wrap('values (', values, ')', 2)],
  );
}

/** Empty: there is nothing to change. */
function writeUpdate({ table, base, bound, keyed, client }: All): readonly Scaffold[] {
  const changed = bound.filter(
    (one) => !keyed.includes(one) && !one.column.isGenerated && !one.column.isAutoIncrement,
  );
  const given = changed.filter(({ column }) => !isKeptByServer(column));
  if (given.length === 0) return [];
  const sets = given.map((one) => {
    return `${one.column.sql} = coalesce(${bindingOf(one)}, ${one.column.sql})`;
  });
  return [
    statement(
      `${base}_update`,
      'exec',
      [
        '-- Changes a row. A column whose value is absent remains as it is.',
        client,
        ...keyed.map((one) => parameterOf(one)),
        ...given.map((one) => parameterOf(one, 'null')),
        '-- error 1062: 409 ALREADY_EXISTS There is such a row already.',
      ],
      [
        `update ${table.sql}`,
        ...sets.map(
          (set, at) =>
            `${at === 0 ? '   set ' : '       '}${set}${at < sets.length - 1 ? ',' : ''}`,
        ),
        ...whereKey(keyed),
      ],
    ),
  ];
}

/** The server sets it at each change, or should: a default that is computed. */
function isKeptByServer({ isUpdatedByServer, fallback }: TableColumn): boolean {
  return isUpdatedByServer || fallback.kind === 'expression';
}

function writeDelete({ table, base, keyed, client }: All): Scaffold {
  const expects = table.hasTransactions
    ? [
        '-- error NO_SUCH_ROW: 404 There is no such row.',
        '-- expect: affected_rows = 1 else NO_SUCH_ROW',
      ]
    : [];
  return statement(
    `${base}_delete`,
    'exec',
    ['-- Deletes a row.', client, ...keyed.map((one) => parameterOf(one)), ...expects],
    [`delete from ${table.sql}`, ...whereKey(keyed)],
  );
}

/** Lines of a select of all columns. */
function selectOf(table: Table, bound: readonly Bound[]): readonly string[] {
  const items = bound.map(({ column }) =>
    column.cells.type === 'GEOMETRY' ? `st_astext(${column.sql}) as ${column.sql}` : column.sql,
  );
  return [...wrap('select ', items, '', 7), `  from ${table.sql}`];
}

function whereKey(keyed: readonly Bound[]): readonly string[] {
  return keyed.map(
    ({ column, parameter }, at) =>
      `${at === 0 ? ' where ' : '   and '}${column.sql} = :${parameter}`,
  );
}

/** The server sorts ENUM and SET by numbers, and compares them with texts as texts. */
function orderOf({ sql, cells }: TableColumn): string {
  return cells.type === 'ENUM' || cells.type === 'SET' ? `cast(${sql} as char)` : sql;
}

function bindingOf({ column, parameter }: Bound): string {
  if (column.cells.type !== 'GEOMETRY') return `:${parameter}`;
  return `st_geomfromtext(:${parameter}${column.srid === null ? '' : `, ${column.srid}`})`;
}

function parameterOf({ parameter, type }: Bound, fallback: string | null = null): string {
  return `-- param ${parameter}: ${type}${fallback === null ? '' : ` = ${fallback}`}`;
}

/** The default of an insert's parameter. `of the table`: no parameter can have it. */
type InsertDefault =
  | { readonly kind: 'of the table' }
  /** As the file has it; null: the parameter is required. */
  | { readonly kind: 'own'; readonly literal: string | null };

function fallbackOf({ column: { fallback, isNullable }, type }: Bound): InsertDefault {
  if (fallback.kind !== 'value') return { kind: 'own', literal: isNullable ? 'null' : null };
  // A parameter of bytes has base64, and a default that looks like base64 would be other bytes.
  if (type === 'bytes') return { kind: 'of the table' };
  const { text } = fallback;
  const word = text === '0' ? 'false' : 'true';
  const literals = [
    text,
    `'${text.replaceAll("'", "''")}'`,
    ...(/^[01]$/.test(text) ? [word] : []),
  ];
  const literal = literals.find((one) => one !== 'null' && isParameter(`${type} = ${one}`));
  return literal === undefined ? { kind: 'of the table' } : { kind: 'own', literal };
}

/** Whether a file may have a parameter of this type and default. */
function isParameter(type: string): boolean {
  if (/[\r\n]/.test(type)) return false;
  const text = `-- name: a :many\n-- for: *\n-- param p: ${type}\nselect :p;\n`;
  return parseFile(text, '', { hasIdempotencyTable: false }).ok;
}

function bindColumns(table: Table): readonly Bound[] {
  const used = new Set<string>([keyArgument]);
  return table.columns.map((column) => {
    const plain = nameFor(column.name, maxNameLength - 'after_'.length, 'p');
    let parameter = plain;
    for (let count = 2; used.has(parameter); count += 1)
      parameter = `${plain.slice(0, 30)}_${count}`;
    used.add(parameter);
    return { column, parameter, type: typeOf(table, column) };
  });
}

/** A name of a statement or parameter that resembles the name of a table or column. */
function nameFor(name: string, maxLength: number, first: string): string {
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '');
  const whole = /^[a-z]/.test(plain) ? plain : `${first}_${plain}`;
  return whole.slice(0, maxLength).replace(/_$/, '');
}

const integers: Readonly<Record<string, readonly [signed: string, unsigned: string]>> = {
  TINYINT: ['int(-128..127)', 'int(0..255)'],
  SMALLINT: ['int(-32768..32767)', 'int(0..65535)'],
  MEDIUMINT: ['int(-8388608..8388607)', 'int(0..16777215)'],
  INT: ['int', 'int(0..4294967295)'],
  BIGINT: ['int', 'int(0..)'],
  YEAR: ['int(0..2155)', 'int(0..2155)'],
};

/** Longest text that a parameter takes: some of a LONGTEXT must fit into a request. */
const maxTextLength = 1_000_000;
const maxScale = 30;

/** The type of the parameter that stands for a column. */
function typeOf(table: Table, column: TableColumn): string {
  const { cells, type, maxLength } = column;
  const isKey = table.key.includes(column.name);
  const integer = integers[cells.type];
  // The cells of a BOOL are numbers, and a key must be what the cells are.
  if (/^tinyint\(1\)(?! unsigned)/.test(type) && !isKey) return 'bool';
  if (integer !== undefined) return integer[cells.unsigned === true ? 1 : 0];
  switch (cells.type) {
    case 'DECIMAL': {
      const { precision = 65, scale = 30 } = cells;
      if (scale > maxScale) return 'text(70)';
      return `decimal(${precision},${scale}${cells.unsigned === true ? '; 0..' : ''})`;
    }
    case 'FLOAT':
    case 'DOUBLE':
      return cells.unsigned === true ? 'float(0..)' : 'float';
    case 'BIT':
      return `int(0..${2n ** BigInt(/\d+/.exec(type)?.[0] ?? '1') - 1n})`;
    case 'DATE':
      return 'date';
    case 'DATETIME':
    case 'TIMESTAMP':
      return 'datetime';
    case 'TIME':
      return 'time';
    case 'JSON':
      return 'json';
    case 'UUID':
      return 'uuid';
    case 'INET4':
    case 'INET6':
      return 'text(45)';
    case 'GEOMETRY':
      return 'text(10000)';
    case 'ENUM': {
      const own = `enum of ${table.name}.${column.name}`;
      return isParameter(own) ? own : textOf(maxLength);
    }
    default:
      return cells.encoding === 'base64' ? 'bytes' : textOf(maxLength);
  }
}

function textOf(maxLength: number | null): string {
  return `text(${Math.min(Math.max(maxLength ?? maxTextLength, 1), maxTextLength)})`;
}

const maxColumns = 100;

/** A list with commas, in lines of at most 100 characters if its items allow that. */
function wrap(before: string, items: readonly string[], after: string, indent: number): string[] {
  const lines: string[] = [];
  let line = before;
  for (const [at, item] of items.entries()) {
    const piece = `${item}${at < items.length - 1 ? ',' : after}`;
    const isFirst = line === before || line.trim() === '';
    const longer = isFirst ? `${line}${piece}` : `${line} ${piece}`;
    if (!isFirst && longer.length > maxColumns) {
      lines.push(line);
      line = `${' '.repeat(indent)}${piece}`;
    } else line = longer;
  }
  return [...lines, items.length === 0 ? `${before}${after}` : line];
}

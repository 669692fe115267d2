// The promise of exactness on /v1: every column type in every format, number mode and shape of rows, as the database holds it.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, test } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { shown, type TypeCase, truth, truthSql } from '../../support/column-truth.ts';
import { newTypesOf, typesOf } from '../../support/known-types.ts';
import { type CsvField, parseStrictCsv } from '../../support/strict-csv.ts';
import { at, JsonNumber, type JsonValue, parseStrictJson } from '../../support/strict-json.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useSharedGateway({
  ready: async () => {
    connection = await database.connect();
    // Zero dates, and values that are cut to what the type holds.
    await connection.query("set sql_mode=''");
  },
});
let connection: Connection;
let tables = 0;
const agent = new Agent({ keepAlive: true });
after(() => agent.destroy());

/** The form of the reply that a request chooses. */
type Wish = {
  readonly accept: 'application/json' | 'application/x-ndjson' | 'text/csv';
  readonly rows: 'array' | 'object';
  readonly numbers: 'exact' | 'raw';
  readonly json: 'value' | 'string';
};

const wishes: readonly Wish[] = [
  ...(['application/json', 'application/x-ndjson'] as const).flatMap((accept) =>
    (['array', 'object'] as const).flatMap((rows) =>
      (['exact', 'raw'] as const).map((numbers) => {
        const json = rows === 'array' ? ('value' as const) : ('string' as const);
        return { accept, rows, numbers, json };
      }),
    ),
  ),
  { accept: 'text/csv', rows: 'array', numbers: 'exact', json: 'value' },
  { accept: 'text/csv', rows: 'array', numbers: 'raw', json: 'string' },
];

/** The cells of column `v`, as the format's own reader finds them. */
async function cellsOf(sql: string, wish: Wish): Promise<JsonValue[]> {
  const { accept, ...layout } = wish;
  const headers = { Accept: accept };
  const reply = await gateway.post('/v1/query', { sql, ...layout }, { headers, agent });
  assert.equal(reply.status, 200, reply.text);
  if (accept === 'text/csv') return recordsOf(reply.body);
  const rows = accept === 'application/json' ? at(reply.exact(), 'rows') : linesOf(reply.text);
  return (rows as JsonValue[]).map((row) => {
    assert.equal(row instanceof Map, wish.rows === 'object');
    return at(row, wish.rows === 'object' ? 'v' : 0);
  });
}

function recordsOf(body: Buffer): CsvField[] {
  const [header, ...records] = parseStrictCsv(body);
  assert.deepEqual(header, ['v', 'one']);
  return records.map(([cell]) => cell ?? null);
}

function linesOf(text: string): JsonValue[] {
  const lines = text.split('\n').map((line) => (line === '' ? null : parseStrictJson(line)));
  assert.equal(lines.pop(), null);
  assert.equal(
    (at(lines.pop() ?? null, 'end', 'truncated') as boolean) || lines.length === 0,
    false,
  );
  return lines.slice(1);
}

const wide = new Set(['LONGLONG', 'NEWDECIMAL']);

/** A cell in the form of the database's truth. Throws when it is not of the type that is promised. */
function shownAs({ kind, wire, type }: TypeCase, cell: JsonValue, wish: Wish): unknown {
  if (cell === null) return null;
  const isCsv = wish.accept === 'text/csv';
  const isNumber = kind === 'number' || kind === 'float' || wire === 'YEAR';
  if (isNumber) {
    const isString = isCsv || (kind === 'number' && wish.numbers === 'exact' && wide.has(wire));
    if (isString !== (typeof cell === 'string')) throw new TypeError(`${type}: ${String(cell)}`);
    return cell instanceof JsonNumber ? cell.text : cell;
  }
  if (type === 'json' && wish.json === 'value' && !isCsv) return cell;
  return shown(kind, cell);
}

/** The truth about a cell as the wish has it. */
function expectedAs({ kind, wire, type }: TypeCase, said: unknown, wish: Wish): unknown {
  const text = truth(kind, said);
  if (text === null) return null;
  // A JSON number has no leading zeros; CSV has the four digits of the YEAR 0000.
  if (wire === 'YEAR' && wish.accept !== 'text/csv') return text.replace(/^0+(?=\d)/, '');
  if (type !== 'json' || wish.json === 'string' || wish.accept === 'text/csv') return text;
  return parseStrictJson(Buffer.from(text, 'hex'));
}

async function check(one: TypeCase): Promise<void> {
  const { type, kind, values } = one;
  const table = `${database.name}.t${tables++}`;
  await connection.query(`create table ${table} (id int primary key, v ${type})`);
  const rows = values.map((value, id) => `(${id},${typeof value === 'string' ? value : value[0]})`);
  await connection.query(`insert into ${table} values ${rows.join(',')}`);
  const [held] = await connection.query({
    sql: `select ${truthSql[kind]('v')} from ${table} order by id`,
    rowsAsArray: true,
  });
  const sql = `select v, 1 as one from ${table} order by id`;
  for (const wish of wishes) {
    const cells = await cellsOf(sql, wish);
    assert.deepEqual(
      cells.map((cell) => shownAs(one, cell, wish)),
      (held as unknown[][]).map(([cell]) => expectedAs(one, cell, wish)),
      `${type} ${JSON.stringify(wish)}`,
    );
  }
}

test('every column type, in every format, as the database holds it', async () => {
  for (const one of typesOf(database)) await check(one);
});

test('the same for the types of newer servers, if the server knows them', async (t) => {
  for (const one of await newTypesOf(database, connection, t)) await check(one);
});

test('the same for text that could end a line, a field or a string', async () => {
  const values = [
    "'\\r\\n'",
    "'\\n'",
    "'\\r'",
    "'a,b'",
    "'\"'",
    '\'""\'',
    "','",
    "'😀\\r\\n\"😀'",
    "concat('\"', repeat('x', 5000), '\\n\"')",
    "repeat('\\r\\n\"', 9000)",
    "repeat('é', 40000)",
    "' leading'",
    "'=1+1'",
    'null',
    "''",
  ];
  await check({ type: 'mediumtext', kind: 'text', wire: 'BLOB', values });
});

test('text that only calls itself JSON, which MariaDB can hold, is a string on one line', async (t) => {
  if (database.flavour !== 'mariadb') {
    t.diagnostic('this server checks JSON');
    return;
  }
  await connection.query('create table calls (id int primary key, v json)');
  await connection.query('set check_constraint_checks=0');
  const texts = ['{"a":', '[1,\n2] x', ' ', "'", '{"a" : \n[1, "\\n"]}', 'nan'];
  for (const [id, text] of texts.entries()) {
    await connection.query('insert into calls values (?, ?)', [id, text]);
  }
  const sql = `select v, 1 as one from ${database.name}.calls order by id`;
  for (const wish of wishes) {
    const isText = wish.json === 'string' || wish.accept === 'text/csv';
    const valid = new Map<string, JsonValue>([['a', [new JsonNumber('1'), '\n']]]);
    const expected = texts.map((text) => (text.startsWith('{"a" ') && !isText ? valid : text));
    assert.deepEqual(await cellsOf(sql, wish), expected, JSON.stringify(wish));
  }
});

// The promise of exactness: for every column type, what comes out of /db is what the database holds.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { shown, type TypeCase, truth, truthSql } from '../../support/column-truth.ts';
import { newTypesOf, typesOf } from '../../support/known-types.ts';
import { at, type JsonValue } from '../../support/strict-json.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

let connection: Connection;
let tables = 0;
after(() => connection?.end());
const { gateway, database } = useSharedGateway({
  ready: async () => {
    connection = await database.connect();
    // Zero dates, and values that are cut to what the type holds.
    await connection.query("set sql_mode=''");
  },
});

async function createTable({ type, values }: TypeCase): Promise<string> {
  const table = `${database.name}.t${tables++}`;
  await connection.query(`create table ${table} (id int primary key, v ${type})`);
  const rows = values.map((value, id) => `(${id},${typeof value === 'string' ? value : value[0]})`);
  await connection.query(`insert into ${table} values ${rows.join(',')}`);
  return table;
}

async function check(one: TypeCase): Promise<void> {
  const { type, kind, wire, values } = one;
  const table = await createTable(one);
  const [held] = await connection.query({
    sql: `select ${truthSql[kind]('v')} from ${table} order by id`,
    rowsAsArray: true,
  });
  const expected = (held as unknown[][]).map(([cell]) => truth(kind, cell));
  const reply = await gateway.db({ SQL: `select v from ${table} order by id` });
  const document = reply.exact();
  const rows = at(document, 'RESULT', 'ROWS') as JsonValue[][];
  assert.deepEqual(
    rows.map(([cell]) => shown(kind, cell ?? null)),
    expected,
    type,
  );
  assert.deepEqual(at(document, 'RESULT', 'TYPES'), [`MYSQL_TYPE_${wire}`], type);
  values.forEach((value, index) => {
    if (typeof value !== 'string') assert.equal(expected[index], value[1], `${type} ${value[0]}`);
  });
}

test('brings every column type out as the database holds it', async (t) => {
  for (const one of typesOf(database)) {
    await t.test(`${one.type}: ${one.values.length} values`, () => check(one));
  }
});

test('does so for the types of newer servers, where the server knows them', async (t) => {
  for (const one of await newTypesOf(database, connection, t))
    await t.test(one.type, () => check(one));
});

test('turns exact numbers, and only these, into strings with NUMBERS:"string"', async () => {
  const document = (
    await gateway.db({
      SQL: "select 18446744073709551615, cast(-1.50 as decimal(65,30)), 1e308, null, 'x', year(now()) > 0",
      NUMBERS: 'string',
    })
  ).exact();
  const [row] = at(document, 'RESULT', 'ROWS') as JsonValue[][];
  assert.deepEqual(row?.[0], '18446744073709551615');
  assert.deepEqual(row?.[1], `-1.5${'0'.repeat(29)}`);
  assert.equal(shown('number', row?.[2] ?? null), '1e308');
  assert.deepEqual(row?.slice(3), [null, 'x', '1']);
});

test('strips the zeros of ZEROFILL from strings, too', async () => {
  const table = await createTable({
    type: 'bigint(20) zerofill',
    kind: 'number',
    wire: 'LONGLONG',
    values: ['0', '42', '18446744073709551615'],
  });
  const reply = await gateway.db({ SQL: `select v from ${table} order by id`, NUMBERS: 'string' });
  assert.deepEqual(at(reply.exact(), 'RESULT', 'ROWS'), [['0'], ['42'], ['18446744073709551615']]);
});

test('lets the type of the column decide, never the value', async () => {
  const document = (
    await gateway.db({ SQL: "select '123', cast('1e5' as char), x'31', cast(7 as char), '' + 0" })
  ).exact();
  const [row] = at(document, 'RESULT', 'ROWS') as JsonValue[][];
  assert.deepEqual(row?.slice(0, 4), ['123', '1e5', 'MQ==', '7']);
  assert.equal(shown('number', row?.[4] ?? null), '0');
});

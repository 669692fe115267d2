// The promise of the document: the same JSON for a result whether it is held back or streamed, in DBSlayer's shapes.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { exchange } from '../../support/http.ts';
import { at, type JsonValue, parseStrictJson } from '../../support/strict-json.ts';

let database: Database;
/** Gateways by how much they hold back. */
let gateways: Readonly<Record<'1KiB' | '64KiB' | '64MiB', Gateway>>;
before(async () => {
  database = await startDatabase();
  await database.query('create table numbers (n int primary key, filler varchar(100))');
  const filler = 'x'.repeat(90);
  const values = Array.from({ length: 3000 }, (_, n) => `(${n},'${filler}')`);
  await database.query(`insert into numbers values ${values}`);
  await database.query('create table written (id int auto_increment primary key, v int)');
  await database.query('create procedure none() begin do 1; end');
  await database.query('create procedure two() begin select 1; select n from numbers; end');
  const start = (buffer: string) => startGateway({ database, settings: { workers: 1, buffer } });
  gateways = {
    '1KiB': await start('1KiB'),
    '64KiB': await start('64KiB'),
    '64MiB': await start('64MiB'),
  };
});
after(async () => {
  await Promise.all(Object.values(gateways ?? {}).map((gateway) => gateway.stop()));
  await database?.stop();
});

const manyColumns = Array.from({ length: 1000 }, (_, index) => `${index} as c${index}`).join();
const ok = '{"SUCCESS":true,"AFFECTED_ROWS":0,"INSERT_ID":0}';
const one = '{"HEADER":["1"],"TYPES":["MYSQL_TYPE_LONGLONG"],"ROWS":[[1]]}';
const named = (name: string, cell: number) =>
  `{"HEADER":["${name}"],"TYPES":["MYSQL_TYPE_LONGLONG"],"ROWS":[[${cell}]]}`;

/** The servers disagree about the type of small integer literals: not what is tested here. */
const normal = (text: string) => text.replaceAll('MYSQL_TYPE_LONG"', 'MYSQL_TYPE_LONGLONG"');

const documents: Readonly<Record<string, string>> = {
  'select 1': one,
  'select 1;': one,
  ' select 1 ; ; ': one,
  'select n as `1` from numbers where n < 0': named('1', 0).replace('[[0]]', '[]'),
  'select 1; select 2': `[${one},${named('2', 2)}]`,
  'select 1; -- c': `[${one},${ok}]`,
  'select 1; do 0; select 2': `[${one},${ok},${named('2', 2)}]`,
  'set @x = 1; select @x as x': `[${ok},${named('x', 1)}]`,
  'do 1': ok,
  'call none()': ok,
  'select 1 as a, 2 as a, 3 as `__proto__`, 4 as constructor, 5 as `a"b\\\\c é誠`':
    '{"HEADER":["a","a","__proto__","constructor","a\\"b\\\\\\\\c é誠"],"TYPES":[' +
    `${Array.from({ length: 5 }, () => '"MYSQL_TYPE_LONGLONG"')}],"ROWS":[[1,2,3,4,5]]}`,
};

test('gives each kind of request its shape, whatever is held back', async (t) => {
  for (const [sql, result] of Object.entries(documents)) {
    await t.test(sql, async () => {
      for (const gateway of Object.values(gateways)) {
        for (const reply of [await gateway.db({ SQL: sql }), await gateway.dbPost({ SQL: sql })]) {
          assert.equal(normal(reply.text), `{"RESULT":${result},"SERVER":"world"}`);
          assert.equal(reply.status, 200);
        }
      }
    });
  }
});

test('counts USE, SET and writes among several statements', async () => {
  const SQL = `use ${database.name}; set @a = 1; insert into written (v) values (1), (2); select 1`;
  const reply = await gateways['64KiB'].db({ SQL });
  const insert = /\{"SUCCESS":true,"AFFECTED_ROWS":2,"INSERT_ID":[1-9]\d*\}/;
  assert.match(normal(reply.text), new RegExp(`"RESULT":\\[${ok},${ok},${insert.source},`));
  const exact = await gateways['64KiB'].db({
    SQL: 'insert into written (id, v) values (4294967295 - 4294960000, 3)',
  });
  assert.match(exact.text, /"RESULT":\{"SUCCESS":true,"AFFECTED_ROWS":1,"INSERT_ID":7295\}/);
});

test('gives affected rows as changed rows, not as matched ones', async () => {
  const SQL =
    'insert into written (id, v) values (900001, 1); update written set v = 1 where id = 900001';
  const document = (await gateways['64KiB'].db({ SQL })).json<{
    RESULT: { AFFECTED_ROWS: number }[];
  }>();
  assert.deepEqual(
    document.RESULT.map((result) => result.AFFECTED_ROWS),
    [1, 0],
  );
});

const long: readonly string[] = [
  `select ${manyColumns}`,
  `select ${manyColumns} from numbers where n < 20`,
  'select * from numbers',
  'select * from numbers limit 11; select n from numbers; do 1; select * from numbers limit 700',
  'call two()',
  'select 1; call two(); select 2 limit 0; -- end',
  "select repeat('é\"', 40000), n, null from numbers limit 2",
  'select n, filler, n as n, filler as `__proto__` from numbers where n > 100',
];

test('gives the same bytes held back and streamed', async (t) => {
  for (const sql of long) {
    await t.test(sql.slice(0, 60), async () => {
      const [streamed, usual, whole] = await Promise.all(
        Object.values(gateways).map((gateway) => gateway.dbPost({ SQL: sql })),
      );
      assert.ok(streamed?.body.equals(whole?.body as Buffer), 'streamed and whole differ');
      assert.ok(usual?.body.equals(whole?.body as Buffer), 'usual and whole differ');
      assert.equal(whole?.headers['content-length'], String(whole?.body.length));
      assert.equal(streamed?.headers['transfer-encoding'], 'chunked');
      parseStrictJson(whole?.body as Buffer);
    });
  }
});

test('sends Content-Length up to the size of the buffer, and streams from the next byte on', async () => {
  for (const [buffer, limit] of [
    ['1KiB', 1024],
    ['64KiB', 65536],
  ] as const) {
    const gateway = gateways[buffer];
    // From some length on, a string has another type, so the bulk is in cells of a fixed one.
    const bulk = limit > 60000 ? "repeat('z', 30000) as a, repeat('z', 30000) as b, " : '';
    const sql = (length: number) => `select ${bulk}repeat('y', ${length}) as x`;
    const frame = (await gateway.dbPost({ SQL: sql(500) })).body.length - 500;
    for (const [more, how] of [
      [-1, 'content-length'],
      [0, 'content-length'],
      [1, 'transfer-encoding'],
    ] as const) {
      const reply = await gateway.dbPost({ SQL: sql(limit + more - frame) });
      assert.equal(reply.body.length, limit + more);
      assert.ok(how in reply.headers, `${limit + more}: ${JSON.stringify(reply.headers)}`);
      if (how === 'content-length') assert.equal(reply.headers[how], String(limit + more));
      assert.equal(
        'content-length' in reply.headers && 'transfer-encoding' in reply.headers,
        false,
      );
    }
  }
});

test('streams to HTTP/1.0 until close, and gives it Content-Length where it fits', async () => {
  const ask = (sql: string) => {
    const path = `/db?${encodeURIComponent(JSON.stringify({ SQL: sql }))}`;
    return exchange(gateways['64KiB'].port, `GET ${path} HTTP/1.0\r\nHost: localhost\r\n\r\n`);
  };
  const short = await ask('select 1');
  assert.equal(short.framing, 'length');
  const streamed = await ask('select * from numbers');
  assert.equal(streamed.framing, 'close');
  assert.equal(streamed.header('transfer-encoding'), undefined);
  const rows = at(parseStrictJson(streamed.body), 'RESULT', 'ROWS') as JsonValue[];
  assert.equal(rows.length, 3000);
});

test("spells its headers as DBSlayer's clients look for them", async () => {
  const get = 'GET /db?%7B%22SQL%22:%22select+1%22%7D HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const reply = await exchange(gateways['64KiB'].port, get);
  const names = reply.headers.map(([name]) => name);
  for (const name of [
    'Content-Type',
    'Content-Length',
    'X-Content-Type-Options',
    'Cache-Control',
    'X-Request-ID',
    'Server-Timing',
    'Connection',
  ]) {
    assert.ok(names.includes(name), `${name} in ${names}`);
  }
  assert.equal(reply.header('content-type'), 'application/json; charset=utf-8');
  assert.equal(reply.header('cache-control'), 'no-store');
  assert.match(reply.header('server-timing') ?? '', /^queue;dur=[\d.]+, db;dur=[\d.]+$/);
});

// The promises of /v1/query's other formats: objects, lines of JSON, CSV, gzip, and which client gets which.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { createNumbers } from '../../support/database/numbers.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { parseStrictCsv } from '../../support/strict-csv.ts';
import { useGateway } from '../../support/use-gateway.ts';

const origin = 'https://pages.example';
const { gateway, database } = useGateway(
  { workers: 1, allow_origins: origin },
  {
    prepare: async (database) => {
      await createNumbers(database);
      await database.query(`
        create table orders (id bigint primary key, total decimal(12,2), name varchar(80), doc json) engine = innodb;
        insert into orders values (1, 12.30, 'a "quoted", name', '{"a" :\\n 1}'), (2, null, '', null), (3, 0.5, 'two\\r\\nlines', '[]');
        create table years (y year); insert into years values (0), (2024);
        create table long_ones (n int primary key) engine = innodb;
        create table made (id int auto_increment primary key, n int unique) engine = innodb;
        create procedure two() begin select 1 as a; select 2 as b; end;
        create function noted(x int) returns int begin insert into made (n) values (x); return x; end`);
    },
    sections: { small: { max_result_bytes: '4KiB' } },
  },
);

const ndjson = 'application/x-ndjson';
const csv = 'text/csv';
const ask = (body: object, Accept = 'application/json', more = {}) =>
  gateway.post('/v1/query', body, { headers: { Accept, ...more } });
const select = 'select id, total, name, doc from orders order by id';
const made = async (n: number) =>
  (await database.query('select n from made where n = ?', [n])).length;

type Problem = { readonly code: string; readonly detail: string; readonly outcome: string };

test('rows as objects, their names in order, whatever the names are', async () => {
  const sql =
    "select id, name as `na\"me`, 'p' as `__proto__`, 'é' as `é\\\\` from orders where id < 3";
  const reply = await ask({ sql, rows: 'object' });
  const rows = '[{"id":"1","na\\"me":"a \\"quoted\\", name","__proto__":"p","é\\\\\\\\":"é"},';
  assert.ok(reply.text.includes(`"rows":${rows}`), reply.text);
  const lines = (await ask({ sql, rows: 'object' }, ndjson)).text.split('\n');
  assert.equal(lines[1], rows.slice(1, -1));
  assert.equal(lines.length, 5);
});

test('rows as objects through the pipeline are the same, and no more than fits is sent there', async () => {
  const body = { sql: select, rows: 'object' };
  const rowsOf = async () => (await ask(body)).json<{ rows: unknown }>().rows;
  const alone = await rowsOf();
  await enterPipeline(gateway, select);
  const replies = await Promise.all(Array.from({ length: 8 }, rowsOf));
  for (const rows of replies) assert.deepEqual(rows, alone);
});

test('duplicate names are refused as objects, and named; a read has changed nothing', async () => {
  const sql = 'select id, name, id, total as name, doc from orders';
  for (const type of ['application/json', ndjson]) {
    const reply = await ask({ sql, rows: 'object' }, type);
    assert.equal(reply.headers['content-type'], 'application/problem+json');
    const problem = reply.json<Problem>();
    assert.deepEqual(
      [reply.status, problem.code, problem.outcome],
      [400, 'DUPLICATE_COLUMNS', 'failed'],
    );
    assert.match(problem.detail, /"id", "name"/);
    assert.doesNotMatch(problem.detail, /total|doc/);
  }
  assert.equal((await ask({ sql })).status, 200);
  assert.equal((await ask({ sql, rows: 'object' }, csv)).status, 200, 'a header may say it twice');
});

type Renamed = { columns: { name: string }[]; rows: Record<string, unknown>[] };

test('an executed statement is not rejected for duplicate names: the names are made distinct', async (t) => {
  const read = await ask({ sql: "select noted(41) as a, 'x' as a, 'y' as a_2", rows: 'object' });
  assert.equal(read.status, 200, read.text);
  const { columns, rows } = read.json<Renamed>();
  assert.deepEqual(
    columns.map(({ name }) => name),
    ['a', 'a_3', 'a_2'],
  );
  assert.deepEqual(Object.entries(rows[0] ?? {}).slice(1), [
    ['a_3', 'x'],
    ['a_2', 'y'],
  ]);
  const lines = await ask({ sql: "select noted(42) as a, 'x' as a", rows: 'object' }, ndjson);
  assert.match(lines.text, /^\{"a":.*,"a_2":"x"\}$/m);
  assert.equal((await made(41)) + (await made(42)), 2);
  if (database.flavour !== 'mariadb') return t.diagnostic('no RETURNING here');
  const sql = 'insert into made (n) values (43) returning id, n, id';
  const written = (await ask({ sql, rows: 'object' })).json<Renamed>();
  const [row = {}] = written.rows;
  assert.deepEqual(Object.keys(row), ['id', 'n', 'id_2']);
  assert.equal(row.id, row.id_2);
  assert.equal(await made(43), 1);
});

test('rows of a write that are more than max_result_bytes are left out, and the write is not stopped', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('no RETURNING here');
  const reply = await gateway.post('/v1/query', {
    section: 'small',
    sql: "insert into long_ones (n) select seq from numbers where seq <= 200 returning n, repeat('x', 100)",
  });
  assert.equal(reply.status, 200, reply.text);
  const { row_count, truncated } = reply.json<{ row_count: number; truncated: boolean }>();
  assert.ok(row_count > 0 && row_count < 200 && truncated);
  assert.deepEqual(await database.query('select count(*) as count from long_ones'), [
    { count: '200' },
  ]);
});

test('lines: columns, a row each, and an end with the number of rows', async () => {
  const reply = await ask({ sql: select }, ndjson);
  assert.equal(reply.headers['content-type'], ndjson);
  assert.equal(reply.headers['content-length'], String(reply.body.length));
  const [first, ...lines] = reply.text.split('\n');
  const { columns } = JSON.parse(String(first)) as { columns: { name: string; type: string }[] };
  assert.deepEqual(
    columns.map(({ name, type }) => `${name} ${type}`),
    ['id BIGINT', 'total DECIMAL', 'name VARCHAR', 'doc JSON'],
  );
  assert.deepEqual(lines, [
    '["1","12.30","a \\"quoted\\", name",{"a":1}]',
    '["2",null,"",null]',
    '["3","0.50","two\\r\\nlines",[]]',
    '{"end":{"row_count":3,"truncated":false}}',
    '',
  ]);
  const cut = await ask({ sql: select, max_rows: 2 }, ndjson);
  assert.ok(cut.text.endsWith('{"end":{"row_count":2,"truncated":true}}\n'));
});

test('CSV: a header, CRLF, NULL distinct from an empty string', async () => {
  // MariaDB keeps a document's text, MySQL writes its own.
  const doc = database.flavour === 'mariadb' ? '{""a"" :\n 1}' : '{""a"": 1}';
  const reply = await ask({ sql: select }, csv);
  assert.equal(reply.headers['content-type'], 'text/csv; charset=utf-8; header=present');
  assert.equal(
    reply.text,
    `id,total,name,doc\r\n1,12.30,"a ""quoted"", name","${doc}"\r\n2,,"",\r\n3,0.50,"two\r\nlines",[]\r\n`,
  );
  const years = 'select y from years order by y';
  assert.equal((await ask({ sql: years }, csv)).text, 'y\r\n0000\r\n2024\r\n');
  const named = await ask({ sql: 'select 1 as `a,b`, 2 as `c"`, 3 as `d`' }, csv);
  assert.deepEqual(parseStrictCsv(named.body), [
    ['a,b', 'c"', 'd'],
    ['1', '2', '3'],
  ]);
  const none = await ask({ sql: 'select id, name from orders where id > 9' }, csv);
  assert.equal(none.text, 'id,name\r\n');
});

test('a failure before the first byte has left is a problem with its own status', async () => {
  for (const type of [ndjson, csv]) {
    const refused = await ask({ sql: 'select * from nope' }, type);
    assert.deepEqual([refused.status, refused.json<Problem>().code], [422, 'ER_NO_SUCH_TABLE']);
    assert.equal(refused.headers['content-type'], 'application/problem+json');
    const late = await ask({ sql: 'select sleep(20)', timeout_ms: 3000 }, type);
    assert.deepEqual([late.status, late.json<Problem>().code], [504, 'DEADLINE_RUNNING']);
  }
});

test('Accept chooses, by weight', async () => {
  const cases: readonly (readonly [accept: string, type: string])[] = [
    ['*/*', 'application/json'],
    ['text/*', csv],
    ['text/csv;header=present', csv],
    ['application/*;q=0.5, text/csv;q=0.4', 'application/json'],
    ['application/json;q=0.5, application/x-ndjson', ndjson],
    ['application/json;q=0, application/*', ndjson],
    ['text/html, */*;q=0.1', 'application/json'],
    ['text/csv;q=nonsense, application/x-ndjson;q=0.001', ndjson],
  ];
  for (const [accept, type] of cases) {
    const reply = await ask({ sql: 'select 1' }, accept);
    assert.equal(String(reply.headers['content-type']).split(';')[0], type, accept);
  }
  for (const accept of ['image/png', 'application/json;q=0', 'text/csv;q=0']) {
    const reply = await ask({ sql: 'insert into made (n) values (1)' }, accept);
    assert.deepEqual([reply.status, reply.json<Problem>().code], [406, 'NOT_ACCEPTABLE'], accept);
  }
  assert.equal(await made(1), 0);
});

test('a statement without columns, or with several results, is JSON or refused', async () => {
  for (const sql of [
    'insert into made (n) values (2)',
    'call two()',
    'do 0',
    '/* x */ update made set n = 3',
  ]) {
    const reply = await ask({ sql }, `${csv}, ${ndjson}`);
    assert.deepEqual([reply.status, reply.json<Problem>().code], [406, 'NOT_ACCEPTABLE'], sql);
    assert.equal(reply.json<Problem>().outcome, 'not_executed');
  }
  assert.equal(await made(2), 0);
  const weighed = await ask(
    { sql: 'insert into made (n) values (4)' },
    `${ndjson}, application/json;q=0.1`,
  );
  assert.equal(weighed.json<{ affected_rows: number }>().affected_rows, 1);
  for (const [sql, key] of [
    ['select 1 into @x', 'affected_rows'],
    ["execute immediate 'call two()'", 'results'],
  ] as const) {
    if (key === 'results' && database.flavour !== 'mariadb') continue;
    const found = await ask({ sql }, ndjson);
    assert.equal(found.headers['content-type'], 'application/json; charset=utf-8');
    assert.ok(key in found.json<object>(), found.text);
  }
});

test('gzip on request, for more than a kibibyte', async () => {
  const sql = "select repeat('x', 2000) as x, id from orders";
  for (const type of ['application/json', ndjson, csv]) {
    const plain = await ask({ sql }, type);
    assert.equal(plain.headers['content-encoding'], undefined);
    assert.match(String(plain.headers.vary), /Accept-Encoding/);
    const reply = await ask({ sql }, type, { 'Accept-Encoding': 'deflate, gzip;q=0.8' });
    assert.equal(reply.headers['content-encoding'], 'gzip');
    assert.equal(reply.headers['content-length'], String(reply.body.length));
    assert.equal(reply.headers['content-type'], plain.headers['content-type']);
    const without = (text: string) => text.replace(/"request_id":"[^"]*"/, '');
    assert.equal(without(gunzipSync(reply.body).toString()), without(plain.text));
  }
  const not: readonly (readonly [sql: string, coding: string])[] = [
    ['select 1', 'gzip'],
    [sql, 'gzip;q=0, *'],
    [sql, 'br'],
    [sql, 'identity, gzip;q=0.5'],
    ['select * from nope', 'gzip'],
  ];
  for (const [text, coding] of not) {
    const reply = await ask({ sql: text }, 'application/json', { 'Accept-Encoding': coding });
    assert.equal(reply.headers['content-encoding'], undefined, coding);
  }
  const old = await gateway.db({ SQL: sql }, { headers: { 'Accept-Encoding': 'gzip' } });
  assert.equal(old.headers['content-encoding'], undefined);
});

test('Vary lists everything that a reply depends on, also when it streams', async () => {
  const sql = "select repeat('x', 1000) from numbers where seq <= 300";
  for (const coding of ['gzip', 'identity']) {
    const more = { Origin: origin, 'Accept-Encoding': coding };
    for (const body of [{ sql: 'select 1' }, { sql }]) {
      const reply = await ask(body, 'application/json', more);
      const vary = String(reply.headers.vary);
      for (const name of ['Origin', 'Accept,', 'Accept-Encoding']) assert.ok(vary.includes(name));
      assert.equal(reply.headers['access-control-allow-origin'], origin);
    }
  }
});

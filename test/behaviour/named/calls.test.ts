// Named statements over HTTP: kinds, formats, parameters, steps, transactions, and what does not exist for a client.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Options, Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { openRaw, type RawReply } from '../../support/http.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from './support/named-directory.ts';

const directory = createNamedDirectory(`
-- name: order :one
-- One order.
-- for: web, app
-- param id: int
select id, status, total from orders where id = :id;

-- name: orders :many
-- Orders, filtered.
-- for: web, app
-- param status: enum(open, paid) = null
-- param sort: choice(newest: id desc | oldest: id) = newest
-- param page_size: int(1..100) = 20
select id, status from orders
 where (:status is null or status = :status) order by :sort limit :page_size;

-- name: some_orders :many
-- for: web
-- param ids: list(int; 10)
select id from orders where id in (:ids) order by id;

-- name: any_order :one
-- for: web
select id from orders;

-- name: pay :exec
-- for: web
-- param id: int
-- expect: affected_rows = 1 else NOT_OPEN
-- error NOT_OPEN: 409 The order is not open.
update orders set status = 'paid' where id = :id and status = 'open';

-- name: touch :exec
-- for: web
-- param id: int
update orders set total = total + 1 where id = :id;

-- name: add :exec
-- for: web
-- key: required
-- param id: int
-- error 1062: 409 ORDER_EXISTS There is such an order.
insert into orders (id, status, total) values (:id, 'open', 1);

-- name: place :batch
-- for: web
-- param id: int
-- param lines: records(sku: text(10), n: int(1..9); 5)
-- error LOST: 409 Lines were lost.
-- step: order
insert into orders (id, status, total) values (:id, 'open', 0);
-- step: lines
-- expect: affected_rows = count(lines) else LOST
insert into order_lines (order_id, sku, n)
 select :id, sku, n from json_table(:lines, '$[*]' columns (sku varchar(10) path '$.sku', n int path '$.n')) as l
  where sku <> 'lost';
-- answer
select id, status from orders where id = :id;
update orders set total = (select sum(n) from order_lines where order_id = :id) where id = :id;

-- name: take :one
-- for: web
-- param total: int
delete from orders where total = :total returning id, status;

-- name: private :many
-- for: app
select 1 as one;

-- name: open :many
-- for: *
select 1 as one;

-- name: kind_of :one
-- for: web
-- param document: json
select json_type(:document) as kind;

-- name: long :many
-- for: web
select id, repeat('x', 30000) as filler from orders where id < 4
union all select 3, repeat('x', 30000);
`);
const named = 'named, batch, transaction';
const file = createClientsFile({
  web: { allow: named },
  app: { allow: 'named, sql' },
  bare: { allow: 'sql, batch' },
  anonymous: { allow: 'named' },
});
after(() => {
  directory.remove();
  file.remove();
});
const { gateway, database } = useGateway(
  { workers: 1, named: directory.path, clients: file.path, idempotency_table: 'request_keys' },
  {
    prepare: async (fresh) => {
      await fresh.query(`
        create table orders (id bigint primary key, status varchar(10), total int);
        create table order_lines (order_id bigint, sku varchar(10), n int);
        insert into orders values (1, 'open', 5), (2, 'paid', 7), (9007199254740993, 'open', 1);
        ${describeCreation(parseIdempotencyTable('request_keys', fresh.name))}`);
    },
  },
);
const asWeb = bearing(tokenOf('web'));
const get = (path: string, headers = {}) =>
  gateway.get(`/v1/named/${path}`, { headers: { ...asWeb, ...headers } });
const call = (name: string, params: object = {}, more: object = {}, headers = {}) =>
  gateway.post(`/v1/named/${name}`, { params, ...more }, { headers: { ...asWeb, ...headers } });
const codeOf = (reply: Reply) => [reply.status, reply.json<{ code: string }>().code];

test('one row is an object, by GET and by POST, with every digit', async () => {
  assert.deepEqual((await get('order?id=1')).json(), { id: '1', status: 'open', total: 5 });
  const exact = await gateway.post('/v1/named/order', '{"params":{"id":9007199254740993}}', {
    headers: asWeb,
  });
  assert.equal(exact.text, '{"id":"9007199254740993","status":"open","total":1}');
  assert.equal(exact.headers['cache-control'], 'no-store');
});

test('no row is 404, and more than one 422', async () => {
  for (const accept of ['application/json', 'application/x-ndjson', 'text/csv']) {
    assert.deepEqual(codeOf(await get('order?id=404', { Accept: accept })), [404, 'NO_ROW']);
    assert.deepEqual(codeOf(await get('any_order', { Accept: accept })), [422, 'NOT_ONE_ROW']);
  }
});

test('many rows are objects, filtered, sorted and limited by parameters of the file', async () => {
  const many = await get('orders?status=open&sort=oldest&page_size=1');
  const { rows, row_count: count, section } = many.json<Record<string, unknown>>();
  assert.deepEqual(rows, [{ id: '1', status: 'open' }]);
  assert.deepEqual([count, section], [1, 'world']);
  const all = (await call('orders')).json<{ rows: { id: string }[] }>();
  assert.deepEqual(
    all.rows.map(({ id }) => id),
    ['9007199254740993', '2', '1'],
  );
  const null_ = (await call('orders', { status: null })).json<{ row_count: number }>();
  assert.equal(null_.row_count, 3);
});

test('a list repeats its name in a GET, and is an array in a POST', async () => {
  const wanted = [{ id: '1' }, { id: '2' }];
  assert.deepEqual((await get('some_orders?ids=1&ids=2')).json<{ rows: [] }>().rows, wanted);
  assert.deepEqual(
    (await call('some_orders', { ids: [1, '2'] })).json<{ rows: [] }>().rows,
    wanted,
  );
});

test('rows may be arrays in a POST, and one row comes with its columns then', async () => {
  const rows = 'array';
  const one = (await call('order', { id: 2 }, { rows })).json<Record<string, unknown>>();
  const columns = (one.columns as { name: string; type: string }[]).map(({ name }) => name);
  assert.deepEqual(
    [Object.keys(one), columns, one.row, one.section],
    [
      ['columns', 'row', 'request_id', 'section'],
      ['id', 'status', 'total'],
      ['2', 'paid', 7],
      'world',
    ],
  );
  const many = (await call('some_orders', { ids: [1] }, { rows })).json<{ rows: unknown }>();
  assert.deepEqual(many.rows, [['1']]);
  const lines = await call(
    'some_orders',
    { ids: [1] },
    { rows },
    { Accept: 'application/x-ndjson' },
  );
  assert.equal(lines.text.split('\n')[1], '["1"]');
  assert.deepEqual(codeOf(await call('order', { id: 404 }, { rows })), [404, 'NO_ROW']);
  assert.deepEqual(codeOf(await call('order', { id: 1 }, { rows: 'tuple' })), [400, 'BAD_KEY']);
});

test('a POST with read_only runs what only reads, and nothing else', async () => {
  const reading = { read_only: true };
  assert.equal((await call('order', { id: 2 }, reading)).status, 200);
  assert.deepEqual(codeOf(await call('touch', { id: 2 }, reading)), [403, 'READ_ONLY']);
  const begun = await gateway.post('/v1/transaction', {}, { headers: asWeb });
  const { transaction } = begun.json<{ transaction: string }>();
  const inWriting = await call('order', { id: 2 }, { ...reading, transaction });
  assert.deepEqual(codeOf(inWriting), [400, 'NOT_IN_TRANSACTION']);
  await gateway.post('/v1/transaction/rollback', { transaction }, { headers: asWeb });
});

test('the ending .csv gives CSV, and Accept chooses any format of rows', async () => {
  const csv = await get('orders.csv?sort=oldest&page_size=2');
  assert.equal(csv.text, 'id,status\r\n1,open\r\n2,paid\r\n');
  assert.match(csv.headers['content-type'] ?? '', /^text\/csv/);
  const one = await get('order.csv?id=2');
  assert.equal(one.text, 'id,status,total\r\n2,paid,7\r\n');
  const lines = await get('orders?page_size=1&sort=oldest', { Accept: 'application/x-ndjson' });
  assert.deepEqual(lines.text.split('\n').slice(1, 2), ['{"id":"1","status":"open"}']);
  assert.deepEqual(codeOf(await call('touch', { id: 1 }, {}, { Accept: 'text/csv' })), [
    406,
    'NOT_ACCEPTABLE',
  ]);
});

test('a parameter that is wrong, unknown, missing or there twice is a 400 that names it', async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['order?id=x', /\bid must be/],
    ['order', /\bid is missing/],
    ['order?id=1&x=2', /"x" is not a parameter/],
    ['order?id=1&id=2', /\bid is there more than once/],
    ['orders?status=', /\bstatus must be/],
    ['orders?page_size=101', /\bpage_size must be/],
    ['orders?sort=id;drop', /\bsort must be one of newest, oldest/],
  ];
  for (const [path, message] of cases) {
    const reply = await get(path);
    assert.deepEqual(codeOf(reply), [400, 'PARAMETER'], path);
    assert.match(reply.json<{ detail: string }>().detail, message);
  }
  assert.deepEqual(codeOf(await call('order', { id: null })), [400, 'PARAMETER']);
  assert.deepEqual(codeOf(await get('order?id=1&_x=1')), [400, 'UNKNOWN_FIELD']);
  assert.deepEqual(codeOf(await get('order?id=1&_timeout_ms=soon')), [400, 'BAD_KEY']);
  assert.deepEqual(codeOf(await get('order?id=%ff')), [400, 'BAD_ENCODING']);
  assert.deepEqual(codeOf(await get('order?id=1&_section=nowhere')), [400, 'WRONG_SERVER']);
  assert.equal((await get('order?id=1&_section=world&_timeout_ms=20000')).status, 200);
});

test('a JSON parameter whose text does not end is a 400, however long it is, and its worker serves on', async () => {
  const workers = gateway.workers();
  const open = encodeURIComponent(`"${'\\"'.repeat(150_000)}`);
  assert.deepEqual(codeOf(await get(`kind_of?document=${open}`)), [400, 'PARAMETER']);
  const whole = encodeURIComponent(JSON.stringify('"'.repeat(150_000)));
  assert.deepEqual((await get(`kind_of?document=${whole}`)).json(), { kind: 'STRING' });
  assert.deepEqual(gateway.workers(), workers);
});

test('a write reports what it changed, and a GET of it is 405', async () => {
  const { affected_rows: affected } = (await call('touch', { id: 2 })).json<{
    affected_rows: number;
  }>();
  assert.equal(affected, 1);
  const refused = await get('touch?id=2');
  assert.deepEqual(codeOf(refused), [405, 'METHOD_NOT_ALLOWED']);
  assert.equal(refused.headers.allow, 'POST');
  assert.equal((await get('place')).status, 405);
});

test('a HEAD is answered with the head of a GET, and the next reply follows at once', async () => {
  const paths = [
    ...['', '/order?id=1', '/order?id=404', '/order?id=x', '/orders?status=open', '/orders.csv'],
    ...['/long', '/touch?id=1', '/none'],
  ];
  const client = await openRaw(gateway.port);
  const headers = Object.entries(asWeb).map(([name, value]) => `${name}: ${value}\r\n`);
  const ask = (method: string, path: string) =>
    client.send(
      `${method} /v1/named${path} HTTP/1.1\r\nHost: localhost\r\n${headers.join('')}\r\n`,
    );
  // A HEAD has nothing to transfer: the coding of a stream may be left out.
  const changing = ['X-Request-ID', 'Server-Timing', 'Date', 'Transfer-Encoding'];
  const shown = ({ status, headers: all }: RawReply) => {
    const lines = all.filter(([name]) => !changing.includes(name)).map((line) => line.join(': '));
    return [status, ...lines.sort()];
  };
  for (const path of paths) {
    ask('HEAD', path);
    ask('GET', path);
    const head = await client.reply({ toHead: true });
    const whole = await client.reply();
    assert.deepEqual(shown(head), shown(whole), path);
  }
  client.close();
  const posted = await gateway.request('/v1/named/order', { method: 'PUT', headers: asWeb });
  assert.equal(posted.headers.allow, 'GET, HEAD, POST');
});

test('what is expected of a write decides whether it counts', async () => {
  await database.query("insert into orders values (20, 'open', 0)");
  assert.equal((await call('pay', { id: 20 })).status, 200);
  const refused = await call('pay', { id: 20 });
  assert.deepEqual(codeOf(refused), [409, 'NOT_OPEN']);
  const { detail, outcome } = refused.json<{ detail: string; outcome: string }>();
  assert.deepEqual([detail, outcome], ['The order is not open.', 'rolled_back']);
});

test('a batch answers with its rows and steps, and is undone if a step does not do what is expected', async () => {
  const lines = [
    { sku: 'a', n: 2 },
    { sku: 'b', n: 3 },
  ];
  const placed = await call('place', { id: 30, lines });
  const { request_id: _, ...reply } = placed.json<Record<string, unknown>>();
  const columns = (reply.columns as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(
    { ...reply, columns },
    {
      committed: true,
      columns: ['id', 'status'],
      rows: [{ id: '30', status: 'open' }],
      row_count: 1,
      truncated: false,
      warnings: 0,
      steps: {
        order: { affected_rows: 1, insert_id: null, warnings: 0 },
        lines: { affected_rows: 2, insert_id: null, warnings: 0 },
      },
      retries: 0,
      section: 'world',
    },
  );
  const refused = await call('place', { id: 31, lines: [...lines, { sku: 'lost', n: 1 }] });
  assert.deepEqual(codeOf(refused), [409, 'LOST']);
  assert.deepEqual(codeOf(await get('order?id=31')), [404, 'NO_ROW']);
});

test('a key executes a call once, and a statement can require one', async () => {
  assert.deepEqual(codeOf(await call('add', { id: 40 })), [400, 'KEY_REQUIRED']);
  const headers = { 'Idempotency-Key': 'forty' };
  const first = await call('add', { id: 40 }, {}, headers);
  const again = await call('add', { id: 40 }, {}, headers);
  assert.equal(again.text, first.text);
  assert.equal(again.headers['idempotency-replayed'], 'true');
  assert.deepEqual(codeOf(await call('add', { id: 40 }, {}, { 'Idempotency-Key': 'other' })), [
    409,
    'ORDER_EXISTS',
  ]);
  assert.deepEqual(codeOf(await call('order', { id: 1 }, {}, headers)), [400, 'IDEMPOTENCY_UNFIT']);
  const batch = { id: 41, lines: [{ sku: 'a', n: 1 }] };
  const placed = await call('place', batch, {}, { 'Idempotency-Key': 'batch' });
  const replayed = await call('place', batch, {}, { 'Idempotency-Key': 'batch' });
  assert.equal(placed.status, 200, placed.text);
  assert.equal(replayed.text, placed.text);
});

test('a write with one row is undone if it has none or several, and a key keeps its row', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('only MariaDB has RETURNING');
  await database.query(
    "insert into orders values (70, 'open', 700), (71, 'open', 710), (72, 'open', 710)",
  );
  assert.deepEqual(codeOf(await call('take', { total: 404 })), [404, 'NO_ROW']);
  const several = await call('take', { total: 710 });
  assert.deepEqual(codeOf(several), [422, 'NOT_ONE_ROW']);
  assert.equal(several.json<{ outcome: string }>().outcome, 'rolled_back');
  assert.equal((await database.query('select * from orders where total = 710')).length, 2);
  const headers = { 'Idempotency-Key': 'taken' };
  const first = await call('take', { total: 700 }, {}, headers);
  assert.equal(first.text, '{"id":"70","status":"open"}');
  const again = await call('take', { total: 700 }, {}, headers);
  assert.deepEqual([again.status, again.text], [200, first.text]);
  assert.equal((await get('take?total=1')).status, 405);
});

test('a statement runs in a transaction that the client holds', async () => {
  const begun = await gateway.post('/v1/transaction', {}, { headers: asWeb });
  const { transaction } = begun.json<{ transaction: string }>();
  await call('touch', { id: 1 }, { transaction });
  const inside = (await call('order', { id: 1 }, { transaction })).json<{ total: number }>();
  assert.equal(inside.total, 6);
  assert.equal((await get('order?id=1')).json<{ total: number }>().total, 5);
  for (const name of ['place', 'pay']) {
    const params = name === 'place' ? { id: 50, lines: [] } : { id: 1 };
    assert.deepEqual(codeOf(await call(name, params, { transaction })), [
      400,
      'NOT_IN_TRANSACTION',
    ]);
  }
  await gateway.post('/v1/transaction/rollback', { transaction }, { headers: asWeb });
  assert.deepEqual(codeOf(await call('touch', { id: 1 }, { transaction })), [
    409,
    'TRANSACTION_ENDED',
  ]);
});

test('a step of a batch may be a named statement, with its own permission and expectations', async () => {
  const batch = (statements: object[], headers: object = asWeb, more: object = {}) =>
    gateway.post(
      '/v1/batch',
      { statements, ...more },
      { headers: headers as Options['headers'] & {} },
    );
  await database.query("insert into orders values (60, 'open', 0)");
  const pay = { named: 'pay', params: { id: 60 } };
  const order = { named: 'order', params: { id: 60 } };
  const paid = await batch([pay, order]);
  const { results } = paid.json<{ results: { rows?: unknown }[] }>();
  assert.deepEqual(results[1]?.rows, [['60', 'paid', 0]]);
  const refused = await batch([{ named: 'touch', params: { id: 60 } }, pay]);
  assert.deepEqual(codeOf(refused), [409, 'NOT_OPEN']);
  assert.equal(refused.json<{ statement: number }>().statement, 1);
  assert.equal((await get('order?id=60')).json<{ total: number }>().total, 0);
  assert.deepEqual(codeOf(await batch([{ named: 'order', params: { id: 404 } }])), [404, 'NO_ROW']);
  assert.deepEqual(codeOf(await batch([{ sql: 'select 1' }])), [403, 'FORBIDDEN']);
  assert.deepEqual(codeOf(await batch([order], bearing(tokenOf('bare')))), [403, 'FORBIDDEN']);
  assert.deepEqual(codeOf(await batch([{ named: 'private' }])), [404, 'NOT_FOUND']);
  assert.deepEqual(codeOf(await batch([{ named: 'add', params: { id: 61 } }])), [
    400,
    'KEY_REQUIRED',
  ]);
  assert.deepEqual(codeOf(await batch([{ named: 'place', params: {} }])), [
    400,
    'NOT_IN_TRANSACTION',
  ]);
  assert.deepEqual(codeOf(await batch([pay], asWeb, { atomic: false })), [
    400,
    'NOT_IN_TRANSACTION',
  ]);
  assert.deepEqual(codeOf(await batch([{ named: 'order', sql: 'select 1' }])), [400, 'BAD_KEY']);
});

test('a statement for other clients is answered like one that does not exist', async () => {
  const masked = (reply: Reply) =>
    [reply.status, reply.text.replace(/"request_id":"[^"]*"/, '')] as const;
  const [foreign, none] = [await get('private'), await get('nothing')];
  assert.deepEqual(masked(foreign), masked(none));
  assert.equal(foreign.status, 404);
  assert.deepEqual(masked(await call('private')), masked(await call('nothing')));
  assert.equal((await get('private', bearing(tokenOf('app')))).status, 200);
});

test('the list has what the caller may call, and nothing else', async () => {
  const list = async (headers: Options['headers']) => {
    const reply = await gateway.get('/v1/named', headers === undefined ? {} : { headers });
    return reply.json<{ statements: { name: string; parameters: object }[] }>().statements;
  };
  const ofWeb = await list(asWeb);
  assert.deepEqual(
    ofWeb.map(({ name }) => name),
    [
      'add',
      'any_order',
      'kind_of',
      'long',
      'open',
      'order',
      'orders',
      'pay',
      'place',
      'some_orders',
      'take',
      'touch',
    ],
  );
  assert.deepEqual(
    ofWeb.find(({ name }) => name === 'order'),
    {
      name: 'order',
      kind: 'one',
      description: 'One order.',
      read_only: true,
      key_required: false,
      parameters: {
        type: 'object',
        properties: { id: { type: ['integer', 'string'], pattern: '^-?\\d+$' } },
        required: ['id'],
        additionalProperties: false,
      },
    },
  );
  assert.deepEqual(
    (await list(bearing(tokenOf('app')))).map(({ name }) => name),
    ['open', 'order', 'orders', 'private'],
  );
  assert.deepEqual(
    (await list(undefined)).map(({ name }) => name),
    ['open'],
  );
  assert.equal((await gateway.get('/v1/named', { headers: bearing(tokenOf('bare')) })).status, 403);
});

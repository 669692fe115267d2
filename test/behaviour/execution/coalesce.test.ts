// `coalesce = on`: identical reads that wait at the same time share one execution, and no reply shows it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { askTogether, holdAnswer, occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { cellOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import type { Gateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { database, proxy, gateway } = useProxiedGateway(
  {
    workers: 1,
    pool: 1,
    coalesce: 'on',
    access_log: 'json',
    max_wait: '1m',
    statement_timeout: '5m',
  },
  {
    prepare: async (own) => {
      await own.query(`
        create table t (id int primary key, v varchar(50), d decimal(30, 10));
        insert into t values (1, 'é', 0.1), (2, 'b', 2), (3, null, 3);
        create function own(n int) returns int deterministic return n`);
    },
    sections: {
      roomy: { pool: 2, coalesce: 'on' },
      narrow: { pool: 1, coalesce: 'on', queue: 4 },
      cutting: { pool: 1, coalesce: 'on', max_rows: 2 },
      plain: { pool: 1 },
    },
  },
);

let coalescedBefore = 0;
beforeEach(async () => {
  coalescedBefore = await allCoalesced();
});
afterEach(async () => {
  proxy.release();
  await waiting(gateway, 0);
});

const times = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);
const allCoalesced = () => readMetric(gateway, 'dbhttpd_coalesced_requests_total');
const coalesced = async () => (await allCoalesced()) - coalescedBefore;

/** The gateway as clients of one of its sections use it. */
function sectionOf(section: string): Gateway {
  const dbPost: Gateway['dbPost'] = (request, options) =>
    gateway.dbPost({ ...request, SERVER: section }, options);
  return { ...gateway, dbPost };
}

test('identical reads that wait together run once, and have the same body', async () => {
  const SQL = 'select id, v, d from t order by id';
  const rowsBefore = await readMetric(gateway, 'dbhttpd_rows_total');
  const durationsBefore = await readMetric(gateway, 'dbhttpd_request_duration_seconds_count');
  const alone = await gateway.dbPost({ SQL });
  const sentBefore = timesSent(proxy, SQL);
  const replies = await askTogether(gateway, proxy, times(20, { SQL }));
  assert.equal(timesSent(proxy, SQL) - sentBefore, 1);
  for (const reply of replies) {
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.body, alone.body);
    assert.equal(reply.headers['content-length'], String(alone.body.length));
    assert.match(String(reply.headers['server-timing']), /^queue;dur=\d+\.\d, db;dur=\d+\.\d$/);
  }
  assert.equal(new Set(replies.map(({ headers }) => headers['x-request-id'])).size, 20);
  assert.equal(await coalesced(), 19);
  assert.equal((await readMetric(gateway, 'dbhttpd_rows_total')) - rowsBefore, 21 * 3 + 1);
  const durations = await readMetric(gateway, 'dbhttpd_request_duration_seconds_count');
  assert.equal(durations - durationsBefore, 22);
});

test('each has its line in the access log, with its own times and result', async () => {
  const SQL = 'select id from t';
  const replies = await askTogether(gateway, proxy, times(3, { SQL }));
  const path = join(gateway.directory, 'log.access.log');
  const ids = replies.map(({ headers }) => headers['x-request-id']);
  const lines = await eventually('all lines are there', () => {
    const all = readFileSync(path, 'utf8').split('\n').filter(Boolean);
    const found = all
      .map((line) => JSON.parse(line))
      .filter((line) => ids.includes(line.request_id));
    return found.length === 3 && found;
  });
  for (const { status, bytes, rows, outcome, duration_ms, queue_ms, db_ms } of lines) {
    assert.deepEqual([status, bytes, rows, outcome], [200, replies[0]?.body.length, 3, 'ok']);
    assert.ok(queue_ms > 0 && db_ms > 0 && duration_ms >= queue_ms + db_ms - 0.1);
  }
  assert.equal(await coalesced(), 2);
});

test('by GET and by POST, with parameters or without: the statement that MySQL would get decides', async () => {
  const SQL = 'select v from t where id = 2';
  await occupy(gateway, proxy);
  const sentBefore = timesSent(proxy, SQL);
  const replies = [
    gateway.dbPost({ SQL }),
    gateway.db({ SQL }),
    gateway.dbPost({ SQL: 'select v from t where id = ?', PARAMS: [2], TIMEOUT: 20_000 }),
    gateway.db({ SQL: 'select v from t where id = :id', PARAMS: { id: 2 } }),
  ];
  await waiting(gateway, replies.length);
  proxy.release();
  for (const reply of await Promise.all(replies)) assert.equal(cellOf(reply), 'b');
  assert.equal(timesSent(proxy, SQL) - sentBefore, 1);
});

test('a read that MySQL has received is not joined: a request sees everything that was committed before it', async () => {
  const SQL = 'select v from t where id = 2';
  const own = sectionOf('roomy');
  for (const options of [{}, { READ_ONLY: true }]) {
    const ask = () => own.dbPost({ SQL, ...options });
    const first = await holdAnswer(proxy, SQL, ask);
    await database.query("update t set v = 'new' where id = 2");
    assert.equal(cellOf(await ask()), 'new');
    proxy.release();
    assert.equal(cellOf(await first.reply), 'b');
    await database.query("update t set v = 'b' where id = 2");
  }
  // A read for which a transaction has begun is not joined either.
  const request = { SQL, READ_ONLY: true };
  const begin = 'START TRANSACTION READ ONLY';
  const first = await holdAnswer(proxy, begin, () => own.dbPost(request));
  assert.equal(cellOf(await own.dbPost(request)), 'b');
  assert.equal(await coalesced(), 0);
  proxy.release();
  assert.equal(cellOf(await first.reply), 'b');
});

test('a request that waits behind another counts in the queue, and does not fit into a full one', async () => {
  const own = sectionOf('narrow');
  const request = { SQL: 'select 4' };
  await own.dbPost(request);
  await occupy(own, proxy);
  const waiters = times(4, request).map((one) => own.dbPost(one));
  await waiting(own, 4);
  assert.equal(outcomeOf(await own.dbPost(request)), '503 QUEUE_FULL not_executed');
  assert.equal(outcomeOf(await own.dbPost({ SQL: 'select 5' })), '503 QUEUE_FULL not_executed');
  proxy.release();
  for (const reply of await Promise.all(waiters)) assert.equal(cellOf(reply), 4);
  const others = await askTogether(
    own,
    proxy,
    [1, 2, 3, 4].map((n) => ({ SQL: `select ${n}` })),
  );
  assert.deepEqual(others.map(cellOf), [1, 2, 3, 4]);
});

test('max_rows cuts for each request, and each reports it', async () => {
  const SQL = 'select id from t order by id';
  const replies = await askTogether(sectionOf('cutting'), proxy, times(3, { SQL }));
  for (const reply of replies) {
    assert.deepEqual(rowsOf(reply), [[1], [2]]);
    assert.match(reply.text, /"TRUNCATED":true\}$/);
  }
  assert.equal(await coalesced(), 2);
});

test('requests that differ in parameters, options or a blank run separately', async () => {
  const SQL = 'select d from t where id = ?';
  const requests = [
    { SQL, PARAMS: [1] },
    { SQL, PARAMS: ['1'] },
    { SQL, PARAMS: [2] },
    { SQL: `${SQL} `, PARAMS: [1] },
    { SQL, PARAMS: [1], NUMBERS: 'string' },
    { SQL, PARAMS: [1], READ_ONLY: true },
    { SQL, PARAMS: [1], CLIENT_INFO: true },
    { SQL, PARAMS: [1], ROLLBACK_ON_ERROR: true },
  ];
  const alone = [];
  for (const request of requests) alone.push(await gateway.dbPost(request));
  const replies = await askTogether(gateway, proxy, requests);
  for (const [at, reply] of replies.entries()) assert.deepEqual(reply.body, alone[at]?.body);
  assert.equal(await coalesced(), 0);
  await askTogether(
    gateway,
    proxy,
    requests.flatMap((request) => [request, request]),
  );
  // Metadata and ROLLBACK_ON_ERROR request more than the statement.
  assert.equal(await coalesced(), requests.length - 2);
});

const neverShared = [
  'select now(6)',
  'select current_timestamp',
  'select rand()',
  'select uuid()',
  'select sleep(0)',
  'select connection_id()',
  'select current_user',
  'select last_insert_id()',
  'select @x',
  'select @@autocommit',
  'select own(1)',
  'select * from t for update',
  'select * from t lock in share mode',
  'select 1; select 1',
  'show tables',
  'update t set v = v where id = 3',
];

test('clock, chance, session, locks, unknown functions, several statements, writes: never shared', async () => {
  for (const SQL of neverShared) {
    const sentBefore = timesSent(proxy, SQL);
    const replies = await askTogether(gateway, proxy, times(3, { SQL }));
    for (const reply of replies) assert.equal(reply.status, 200, SQL);
    assert.equal(timesSent(proxy, SQL) - sentBefore, 3, SQL);
  }
  assert.equal(await coalesced(), 0);
});

test('off by default: every request has its own execution', async () => {
  const SQL = 'select count(*) from t';
  const sentBefore = timesSent(proxy, SQL);
  const replies = await askTogether(sectionOf('plain'), proxy, times(5, { SQL }));
  assert.deepEqual(replies.map(cellOf), times(5, 3));
  assert.equal(timesSent(proxy, SQL) - sentBefore, 5);
  assert.equal(await coalesced(), 0);
});

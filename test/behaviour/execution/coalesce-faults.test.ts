// `coalesce = on` with faults: whatever happens to the request whose statement runs, its followers get the right reply. Replies too long to
// be held back, readers that do not read, and a stop meanwhile.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { askTogether, holdAnswer, occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, documentOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { askAtOnce } from './support/at-once.ts';

const SQL = 'select count(*) from t';

const { database, proxy, gateway } = useProxiedGateway(
  { workers: 1, pool: 1, coalesce: 'on', max_wait: '1m', statement_timeout: '5m' },
  {
    prepare: async (own) => {
      await own.query(`
        create table t (id int primary key, v varchar(200));
        insert into t with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select n, repeat('x', 180) from c`);
    },
  },
);

let sentBefore = 0;
let coalescedBefore = 0;

beforeEach(async () => {
  proxy.release();
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 0' })), 0);
  await waiting(gateway, 0);
  sentBefore = timesSent(proxy, SQL);
  coalescedBefore = await readMetric(gateway, 'dbhttpd_coalesced_requests_total');
});
const sent = () => timesSent(proxy, SQL) - sentBefore;
const coalesced = async () =>
  (await readMetric(gateway, 'dbhttpd_coalesced_requests_total')) - coalescedBefore;
const followers = 4;

/** Queues a request, and others behind it for the same statement. All wait for the only session. */
async function queueUp(leader: () => Promise<Reply>) {
  await occupy(gateway, proxy);
  const first = leader();
  first.catch(() => undefined);
  await waiting(gateway, 1);
  const rest = Array.from({ length: followers }, () => gateway.dbPost({ SQL }));
  await waiting(gateway, 1 + followers);
  return { first, rest };
}

/** The same, up to the moment when MySQL has the first request's statement. Its answer is held back. */
async function runFirst(leader: () => Promise<Reply>) {
  const queued = await queueUp(leader);
  await runLeader();
  return queued;
}

async function runLeader(): Promise<void> {
  const rule = proxy.on((statement) => statement === SQL, { kind: 'stall' }, { times: 1 });
  proxy.release();
  await eventually('the statement is held back', () => rule.hits() === 1);
  rule.remove();
}

/** All wait for the only session. The worker finds them in one turn of its loop, so a short deadline begins when all are there. */
async function queueAtOnce(requests: readonly object[]): Promise<readonly Promise<Reply>[]> {
  await occupy(gateway, proxy);
  return askAtOnce(gateway, requests);
}

/** A quarter of it is long enough for the first one to get the session on a busy machine. */
const runningMs = 8_000;
/** The three quarters that are left are a busy machine's: after the whole, a request has met its deadline and not the bound of its wait. */
const waitingMs = 3_000;

const askFirst = () => gateway.dbPost({ SQL });

async function checkAll(rest: readonly Promise<Reply>[]): Promise<void> {
  for (const reply of await Promise.all(rest)) assert.equal(cellOf(reply), 900);
}

test('the connection is lost: unknown for the first alone, the others run by themselves', async () => {
  const { first, rest } = await runFirst(askFirst);
  proxy.cutAll();
  assert.equal(outcomeOf(await first), '502 CONNECTION_LOST unknown');
  await checkAll(rest);
  assert.equal(sent(), 1 + followers);
});

test("the statement is killed by an administrator: the error is the first's, the others run by themselves", async () => {
  const blocking = await database.connect();
  await blocking.query('lock tables t write');
  await occupy(gateway, proxy);
  const all = Array.from({ length: 1 + followers }, askFirst);
  await waiting(gateway, 1 + followers);
  proxy.release();
  const processlist = await openProcesslist(database);
  await processlist.started(SQL);
  const [thread] = await processlist.running(SQL);
  await database.query(`kill query ${thread?.id}`);
  const replies = await Promise.race([Promise.all(all), unlockedOnce(all)]);
  async function unlockedOnce(pending: readonly Promise<Reply>[]) {
    await Promise.race(pending);
    await blocking.query('unlock tables');
    return Promise.all(pending);
  }
  processlist.close();
  blocking.destroy();
  const errors = replies.filter((reply) => documentOf(reply).MYSQL_ERRNO === 1317);
  assert.equal(errors.length, 1);
  assert.equal(
    replies.filter((reply) => !errors.includes(reply) && cellOf(reply) === 900).length,
    followers,
  );
  assert.equal(sent(), 1 + followers);
});

test('MySQL refuses the statement: each request has its own error', async () => {
  await occupy(gateway, proxy);
  const all = Array.from({ length: 5 }, () => gateway.dbPost({ SQL: 'select * from missing' }));
  await waiting(gateway, 5);
  proxy.release();
  for (const reply of await Promise.all(all)) assert.equal(documentOf(reply).MYSQL_ERRNO, 1146);
  assert.equal(timesSent(proxy, 'select * from missing'), 5);
  assert.equal(await coalesced(), 0);
});

for (const when of ['waiting', 'running'] as const) {
  const queue = when === 'waiting' ? queueUp : runFirst;
  const more = when === 'running' ? 1 : 0;

  test(`the first one's client goes while ${when}: the others share one execution`, async () => {
    const client = await openRaw(gateway.port);
    const query = encodeURIComponent(JSON.stringify({ SQL }));
    const gone = new Promise<never>(() => {});
    const { rest } = await queue(() => {
      client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      return gone;
    });
    const goneBefore = await readMetric(gateway, 'dbhttpd_clients_gone_total');
    client.reset();
    await eventually('it is gone', async () => {
      return (await readMetric(gateway, 'dbhttpd_clients_gone_total')) > goneBefore;
    });
    proxy.release();
    await checkAll(rest);
    assert.equal(sent(), 1 + more);
    assert.equal(await coalesced(), followers - 1);
  });

  test(`the first one's time passes while ${when}: the others share one execution`, async () => {
    const TIMEOUT = when === 'waiting' ? waitingMs : runningMs;
    const others = Array.from({ length: followers }, () => ({ SQL }));
    const [first, ...rest] = await queueAtOnce([{ SQL, TIMEOUT }, ...others]);
    if (when === 'running') {
      await waiting(gateway, 1 + followers);
      await runLeader();
    }
    const fate =
      when === 'waiting' ? '503 WAITED_TOO_LONG not_executed' : '504 DEADLINE_RUNNING failed';
    assert.equal(outcomeOf((await first) ?? assert.fail()), fate);
    proxy.release();
    await checkAll(rest);
    assert.equal(sent(), 1 + more);
    assert.equal(await coalesced(), followers - 1);
  });
}

test('when the first one gives up waiting, the read keeps its place in the queue', async () => {
  const behind = { SQL: "select 'behind'" };
  const all = await queueAtOnce([{ SQL, TIMEOUT: waitingMs }, behind, { SQL }]);
  const [impatient, other, follower] = all;
  assert.ok(impatient && other && follower);
  assert.equal(outcomeOf(await impatient), '503 WAITED_TOO_LONG not_executed');
  proxy.release();
  await checkAll([follower]);
  await other;
  assert.deepEqual(proxy.statements.slice(-2), [SQL, behind.SQL]);
});

test("a follower's own deadline holds: not executed, come again, and no other request is harmed", async () => {
  await occupy(gateway, proxy);
  const first = askFirst();
  await waiting(gateway, 1);
  const impatient = Array.from({ length: followers }, () => ({ SQL, TIMEOUT: runningMs }));
  const rest = await askAtOnce(gateway, impatient);
  await waiting(gateway, 1 + followers);
  await runLeader();
  for (const reply of await Promise.all(rest)) {
    assert.equal(outcomeOf(reply), '503 DEADLINE_WAITING not_executed');
    assert.match(String(reply.headers['retry-after']), /^\d+$/);
    assert.match(String(reply.headers['server-timing']), /^queue;dur=\d{3,}\.\d, db;dur=0\.0$/);
  }
  await waiting(gateway, 0);
  proxy.release();
  assert.equal(cellOf(await first), 900);
  assert.equal(sent(), 1);
});

test("a follower's client that goes is forgotten, and leaves its place in the queue", async () => {
  const client = await openRaw(gateway.port);
  const { first, rest } = await queueUp(askFirst);
  const query = encodeURIComponent(JSON.stringify({ SQL }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await waiting(gateway, 2 + followers);
  client.reset();
  await waiting(gateway, 1 + followers);
  proxy.release();
  await checkAll([first, ...rest]);
  assert.equal(sent(), 1);
});

for (const [what, rows] of [
  ['as large as is held back, nearly', 330],
  ['larger than what is held back', 900],
] as const) {
  test(`a reply ${what}: complete for each request`, async () => {
    const large = `select id, v from t where id <= ${rows} order by id`;
    const requests = Array.from({ length: 5 }, () => ({ SQL: large }));
    const [first, ...others] = await askTogether(gateway, proxy, requests);
    assert.ok(first);
    assert.equal(rowsOf(first).length, rows);
    for (const other of others) assert.deepEqual(other.body, first.body);
    const isWhole = first.headers['content-length'] !== undefined;
    assert.equal(timesSent(proxy, large), isWhole ? 1 : 5);
    assert.equal(isWhole, rows === 330);
  });
}

test('no request waits for a reader that does not read its long reply', async () => {
  const long = 'select a.id, a.v from t a join t b on b.id <= 40';
  const settings = { workers: 1, pool: 2, coalesce: 'on' };
  const streaming = await startGateway({ database: proxy.target, settings });
  await occupy(streaming, proxy);
  await occupy(streaming, proxy);
  const client = await openRaw(streaming.port);
  client.socket.pause();
  const query = encodeURIComponent(JSON.stringify({ SQL: long }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await waiting(streaming, 1);
  const rest = [1, 2].map(() => streaming.dbPost({ SQL: long }));
  await waiting(streaming, 3);
  proxy.release();
  for (const reply of await Promise.all(rest)) assert.equal(rowsOf(reply).length, 36_000);
  client.reset();
  await streaming.stop();
});

test('the gateway stops: requests that wait behind another are answered', async () => {
  const settings = { workers: 1, pool: 1, coalesce: 'on' };
  const stopping = await startGateway({ database: proxy.target, settings });
  const held = await holdAnswer(proxy, "select 'first'", () =>
    stopping.dbPost({ SQL: "select 'first'" }),
  );
  const rest = Array.from({ length: 4 }, () => stopping.dbPost({ SQL }));
  await waiting(stopping, 4);
  const stopped = stopping.stop();
  await eventually('it drains', () => stopping.log().includes('drain'));
  proxy.release();
  assert.equal(cellOf(await held.reply), 'first');
  for (const reply of await Promise.all(rest)) assert.equal(cellOf(reply), 900);
  await stopped;
  assert.equal(sent(), 1);
});

test('a stop that ends a long read starts it for none of the requests that waited for it', async () => {
  const stopping = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 2, coalesce: 'on', drain_timeout: '100ms' },
  });
  const long =
    'select sum(length(a.v)) from t a, t b, t c, t d where a.id + b.id + c.id + d.id < 0';
  // When the stop comes, this session is free, and was used so recently that the gateway would not ping it first.
  await occupy(stopping, proxy);
  await occupy(stopping, proxy);
  const replies = Array.from({ length: 5 }, () => stopping.dbPost({ SQL: long }));
  await waiting(stopping, replies.length);
  proxy.release();
  await eventually('one of them runs', () => timesSent(proxy, long) === 1);
  await stopping.stop();
  assert.deepEqual((await Promise.all(replies)).map(outcomeOf), [
    '502 STOPPING failed',
    ...Array.from({ length: 4 }, () => '503 STOPPING not_executed'),
  ]);
  assert.equal(timesSent(proxy, long), 1);
});

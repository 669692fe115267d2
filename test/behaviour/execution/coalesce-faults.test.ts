// `coalesce = on`, on bad days: whatever becomes of the request whose statement runs, those behind it get what is theirs.
// Must not know how they are matched: the proxy shows what reached MySQL.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf, documentOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';

const SQL = 'select count(*) from t';

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;
let sentBefore = 0;
let coalescedBefore = 0;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key, v varchar(200));
    insert into t with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n, repeat('x', 180) from c`);
  proxy = await startProxiedDatabase(database);
  const settings = { workers: 1, pool: 1, coalesce: 'on' };
  gateway = await startGateway({ database: proxy.target, settings });
});
beforeEach(async () => {
  proxy.release();
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 0' })), 0);
  await waiting(gateway, 0);
  sentBefore = timesSent(proxy, SQL);
  coalescedBefore = await readMetric(gateway, 'dbhttpd_coalesced_requests_total');
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});

const sent = () => timesSent(proxy, SQL) - sentBefore;
const coalesced = async () =>
  (await readMetric(gateway, 'dbhttpd_coalesced_requests_total')) - coalescedBefore;
const followers = 4;

/** One request of its own kind, and others behind it, for the same; all wait for the only session. */
async function queueUp(leader: () => Promise<Reply>, following: object = { SQL }) {
  await occupy(gateway, proxy);
  const first = leader();
  first.catch(() => undefined);
  await waiting(gateway, 1);
  const rest = Array.from({ length: followers }, () => gateway.dbPost(following));
  await waiting(gateway, 1 + followers);
  return { first, rest };
}

/** The same, up to the moment when MySQL has got the first one's statement, whose answer is held back. */
async function runFirst(leader: () => Promise<Reply>, following?: object) {
  const queued = await queueUp(leader, following);
  const rule = proxy.on((statement) => statement === SQL, { kind: 'stall' }, { times: 1 });
  proxy.release();
  await eventually('the statement is held back', () => rule.hits() === 1);
  rule.remove();
  return queued;
}

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

test('MySQL refuses the statement: each has its own error', async () => {
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

  test(`the first one's deadline passes while ${when}: the others share one execution`, async () => {
    const { first, rest } = await queue(() => gateway.dbPost({ SQL, TIMEOUT: 4_000 }));
    const fate =
      when === 'waiting' ? '503 DEADLINE_WAITING not_executed' : '504 DEADLINE_RUNNING failed';
    assert.equal(outcomeOf(await first), fate);
    proxy.release();
    await checkAll(rest);
    assert.equal(sent(), 1 + more);
    assert.equal(await coalesced(), followers - 1);
  });
}

test('when the first one gives up waiting, the read keeps its place in the queue', async () => {
  await occupy(gateway, proxy);
  const impatient = gateway.dbPost({ SQL, TIMEOUT: 4_000 });
  await waiting(gateway, 1);
  const behind = gateway.dbPost({ SQL: "select 'behind'" });
  await waiting(gateway, 2);
  const follower = gateway.dbPost({ SQL });
  await waiting(gateway, 3);
  assert.equal(outcomeOf(await impatient), '503 DEADLINE_WAITING not_executed');
  proxy.release();
  await checkAll([follower]);
  await behind;
  assert.deepEqual(proxy.statements.slice(-2), [SQL, "select 'behind'"]);
});

test("a follower's own deadline holds: not executed, come again, and nobody else is harmed", async () => {
  const { first, rest } = await runFirst(askFirst, { SQL, TIMEOUT: 4_000 });
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

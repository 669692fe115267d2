// `coalesce = on`: identical reads that wait at the same time share one execution, and nobody can tell by a reply.
// Must not know how they are matched: the proxy shows what reached MySQL.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { askTogether, holdAnswer, occupy, timesSent, waiting } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let proxy: ProxiedDatabase;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key, v varchar(50), d decimal(30, 10));
    insert into t values (1, 'é', 0.1), (2, 'b', 2), (3, null, 3)`);
  proxy = await startProxiedDatabase(database);
});
after(async () => {
  await proxy?.stop();
  await database.stop();
});

async function withGateway(settings: Settings, use: (gateway: Gateway) => Promise<void>) {
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 1, coalesce: 'on', ...settings },
  });
  try {
    await use(gateway);
    assert.equal(await readMetric(gateway, 'dbhttpd_queue_length'), 0);
  } finally {
    proxy.release();
    await gateway.stop();
  }
}

const times = <Item>(count: number, item: Item) => Array.from({ length: count }, () => item);
const coalesced = (gateway: Gateway) => readMetric(gateway, 'dbhttpd_coalesced_requests_total');

test('identical reads that wait together run once, and have the same body', async () => {
  const SQL = 'select id, v, d from t order by id';
  await withGateway({}, async (gateway) => {
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
    assert.equal(await coalesced(gateway), 19);
    assert.equal(await readMetric(gateway, 'dbhttpd_rows_total'), 21 * 3 + 1);
    assert.equal(await readMetric(gateway, 'dbhttpd_request_duration_seconds_count'), 22);
  });
});

test('each has its line in the access log, with its own times and what it got', async () => {
  const SQL = 'select id from t';
  await withGateway({ access_log: 'json' }, async (gateway) => {
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
    assert.equal(await coalesced(gateway), 2);
  });
});

test('by GET and by POST, with parameters or without: the statement that MySQL would get decides', async () => {
  const SQL = 'select v from t where id = 2';
  await withGateway({}, async (gateway) => {
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
});

for (const options of [{}, { READ_ONLY: true }]) {
  const how = JSON.stringify(options);
  test(`a read that MySQL has got is not joined: what was committed before a request is seen by it ${how}`, async () => {
    const SQL = 'select v from t where id = 2';
    await withGateway({ pool: 2 }, async (gateway) => {
      const ask = () => gateway.dbPost({ SQL, ...options });
      const first = await holdAnswer(proxy, SQL, ask);
      await database.query("update t set v = 'new' where id = 2");
      assert.equal(cellOf(await ask()), 'new');
      proxy.release();
      assert.equal(cellOf(await first.reply), 'b');
      await database.query("update t set v = 'b' where id = 2");
    });
  });
}

test('a read in whose name a transaction has begun is not joined either', async () => {
  const request = { SQL: 'select v from t where id = 2', READ_ONLY: true };
  await withGateway({ pool: 2 }, async (gateway) => {
    const begin = 'START TRANSACTION READ ONLY';
    const first = await holdAnswer(proxy, begin, () => gateway.dbPost(request));
    assert.equal(cellOf(await gateway.dbPost(request)), 'b');
    assert.equal(await coalesced(gateway), 0);
    proxy.release();
    assert.equal(cellOf(await first.reply), 'b');
  });
});

test('who waits behind another counts in the queue, and does not fit into a full one', async () => {
  await withGateway({ queue: 4 }, async (gateway) => {
    const request = { SQL: 'select 4' };
    await gateway.dbPost(request);
    await occupy(gateway, proxy);
    const waiters = times(4, request).map((one) => gateway.dbPost(one));
    await waiting(gateway, 4);
    assert.equal(outcomeOf(await gateway.dbPost(request)), '503 QUEUE_FULL not_executed');
    assert.equal(
      outcomeOf(await gateway.dbPost({ SQL: 'select 5' })),
      '503 QUEUE_FULL not_executed',
    );
    proxy.release();
    for (const reply of await Promise.all(waiters)) assert.equal(cellOf(reply), 4);
    const others = await askTogether(
      gateway,
      proxy,
      [1, 2, 3, 4].map((n) => ({ SQL: `select ${n}` })),
    );
    assert.deepEqual(others.map(cellOf), [1, 2, 3, 4]);
  });
});

test('max_rows cuts for each, and says so to each', async () => {
  await withGateway({ max_rows: 2 }, async (gateway) => {
    const replies = await askTogether(
      gateway,
      proxy,
      times(3, { SQL: 'select id from t order by id' }),
    );
    for (const reply of replies) {
      assert.deepEqual(rowsOf(reply), [[1], [2]]);
      assert.match(reply.text, /"TRUNCATED":true\}$/);
    }
    assert.equal(await coalesced(gateway), 2);
  });
});

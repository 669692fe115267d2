// A connection that the server or the network closed while it lay idle costs no request anything.
// Must not know how the gateway reconnects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let proxy: ProxiedDatabase;

before(async () => {
  database = await startDatabase();
  proxy = await startProxiedDatabase(database);
});
after(async () => {
  await proxy.stop();
  await database.stop();
});

async function withGateway(settings: Settings, use: (gateway: Gateway) => Promise<void>) {
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 3, ...settings },
  });
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

test('wait_timeout passed: the next request works, and none is ever a 502', async () => {
  await withGateway({ pool: 1, init_sql: 'set wait_timeout = 1' }, async (gateway) => {
    const connects = () => readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' });
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    for (const idleMs of [990, 1000, 1010, 1500]) {
      await pause(idleMs);
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    }
    assert.ok((await connects()) >= 2, 'no connection has been closed by the server');
  });
});

test('an idle connection that a firewall has forgotten is replaced before a statement is sent on it', async () => {
  await withGateway({ pool: 1 }, async (gateway) => {
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    await pause(1000);
    // Only the open connections are cut off; new ones find their way.
    proxy.partition();
    proxy.admit();
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 6' })), 6);
    proxy.heal();
  });
});

test('killed by an administrator while idle: the next request works', async () => {
  await withGateway({ pool: 1 }, async (gateway) => {
    const id = cellOf(await gateway.dbPost({ SQL: 'select connection_id()' }));
    await database.query(`kill ${id}`);
    const next = await gateway.dbPost({ SQL: 'select connection_id()' });
    assert.notEqual(cellOf(next), id);
  });
});

test('all connections cut while idle: no request notices', async () => {
  await withGateway({}, async (gateway) => {
    for (const how of ['fin', 'reset'] as const) {
      await fillPool(gateway, 3);
      proxy.cutAll(how);
      const replies = await Promise.all([1, 2, 3].map(() => gateway.dbPost({ SQL: 'select 5' })));
      assert.deepEqual(replies.map(cellOf), [5, 5, 5]);
    }
  });
});

test('a database that is away is not stormed: one attempt at a time, at growing intervals', async () => {
  await withGateway({ pool: 10 }, async (gateway) => {
    await fillPool(gateway, 10);
    proxy.refuse(true);
    const connectionsBefore = proxy.connections().total;
    proxy.cutAll();
    const from = performance.now();
    let asked = 0;
    while (performance.now() - from < 3000 || asked <= 100) {
      const replies = await Promise.all(
        Array.from({ length: 10 }, () => gateway.dbPost({ SQL: 'select 1' })),
      );
      for (const reply of replies) assert.match(outcomeOf(reply), /^503 \w+ not_executed$/);
      asked += replies.length;
    }
    const attempts = proxy.connections().total - connectionsBefore;
    const seconds = (performance.now() - from) / 1000;
    // Ten at once at first; then pool and control back off: 50 ms, 100 ms, … 1 s.
    assert.ok(attempts <= 34 + 2 * seconds, `${attempts} in ${seconds} s, ${asked} requests`);
    proxy.refuse(false);
    const returnedAt = performance.now();
    await eventually(
      'service is back',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
    assert.ok(performance.now() - returnedAt < 2000);
  });
});

test('what waits for a connection is bounded while none can be opened', async () => {
  proxy.partition();
  await withGateway({ pool: 2, queue: 5 }, async (gateway) => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => gateway.dbPost({ SQL: 'select 1', TIMEOUT: 3_000 })),
    );
    const full = replies.filter((reply) => outcomeOf(reply).includes('QUEUE_FULL'));
    assert.ok(full.length >= 30 - 5 - 2, `${full.length} refused at once`);
    for (const reply of replies) assert.match(outcomeOf(reply), /^503 \w+ not_executed$/);
    proxy.heal();
    await eventually(
      'service is back',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
  });
});

test('no connection stays behind when the gateway stops', async () => {
  const processlist = await openProcesslist(database);
  await withGateway({}, async (gateway) => {
    await fillPool(gateway, 3);
    await eventually('control too', async () => (await processlist.connections()).length >= 4);
  });
  await eventually('all are gone', async () => (await processlist.connections()).length === 0);
  processlist.close();
});

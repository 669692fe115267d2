// A database that goes and comes back: one line each, few attempts while nobody asks, and served again at once.
// Must not know how often it is tried.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
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

async function withGateway(use: (gateway: Gateway) => Promise<void>) {
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 4 },
  });
  try {
    await use(gateway);
  } finally {
    proxy.refuse(false);
    await gateway.stop();
  }
}

/** Five connections: the pool's four, and the one that kills. */
async function fill(gateway: Gateway): Promise<void> {
  await fillPool(gateway, 4);
  await eventually('control', () => readMetric(gateway, 'dbhttpd_control_connected'));
}
const linesAbout = (gateway: Gateway, what: RegExp) =>
  gateway
    .log()
    .split('\n')
    .filter((line) => what.test(line));

test('one line when it goes and one when it is back, under load, and served within a second', async () => {
  await withGateway(async (gateway) => {
    await fill(gateway);
    proxy.refuse(true);
    proxy.cutAll();
    const from = performance.now();
    while (performance.now() - from < 3000) {
      await Promise.all([gateway.dbPost({ SQL: 'select 1' }), gateway.get('/readyz')]);
      await pause(20);
    }
    const gone = linesAbout(gateway, / (database|connections?) /);
    assert.equal(gone.length, 1, gone.join('\n'));
    assert.match(
      gone[0] ?? '',
      / warn .*cannot connect to the database address=\S+ account=\S+ reason=.* lost=5 in_use=0$/,
    );
    proxy.refuse(false);
    const backAt = performance.now();
    await eventually(
      'served',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
    assert.ok(performance.now() - backAt < 1500);
    await eventually('the line of its return', () => linesAbout(gateway, /is back/).length === 1);
    const [back = ''] = linesAbout(gateway, /is back/);
    const [, seconds, attempts] = /after_s=([\d.]+) attempts=(\d+)/.exec(back) ?? [];
    const awayMs = performance.now() - from;
    assert.ok(Number(seconds) > 2.5 && Number(seconds) < awayMs / 1000 + 0.1, back);
    assert.ok(Number(attempts) > 3, back);
    assert.equal(linesAbout(gateway, /cannot connect/).length, 1);
  });
});

test('while nobody asks it is tried ever less, and who asks after its return is served within a second', async () => {
  await withGateway(async (gateway) => {
    await fill(gateway);
    proxy.refuse(true);
    proxy.cutAll();
    assert.equal((await gateway.dbPost({ SQL: 'select 1' })).status, 503);
    await pause(6000);
    const attempts = proxy.connections().total;
    await pause(3000);
    // Pool and control each wait for 1.6 s at least by now, and soon for 5 s.
    const more = proxy.connections().total - attempts;
    assert.ok(more <= 4, `${more} attempts in three seconds`);
    proxy.refuse(false);
    const serves = async () => (await gateway.dbPost({ SQL: 'select 5' })).status === 200;
    // Only an attempt that has just failed lets the next one wait, for a second at most.
    await eventually('it serves', serves, { timeoutMs: 1500 });
  });
});

test('connections that are cut while the database stays are a warning that counts those with a statement on them', async () => {
  await withGateway(async (gateway) => {
    await fill(gateway);
    const running = gateway.dbPost({ SQL: 'select sleep(20)' });
    await eventually('it runs', async () => {
      const { text } = await gateway.get('/metrics');
      return /^dbhttpd_pool_connections\{.*state="busy"\} 1$/m.test(text);
    });
    proxy.cutAll();
    assert.equal((await running).status, 502);
    await eventually('the line', () => linesAbout(gateway, /were lost/).length === 1);
    const [line = ''] = linesAbout(gateway, /were lost/);
    assert.match(line, / warn .*connections to the database were lost count=5 in_use=1 /);
  });
});

test('a readiness probe that finds the database back wakes all who wait for it', async () => {
  await withGateway(async (gateway) => {
    await fill(gateway);
    proxy.refuse(true);
    proxy.cutAll();
    await pause(4000);
    proxy.refuse(false);
    await eventually('ready', async () => (await gateway.get('/readyz')).status === 200, {
      timeoutMs: 2500,
    });
    await eventually('control', async () => {
      const { text } = await gateway.get('/metrics');
      return /^dbhttpd_control_connected\{.*\} 1$/m.test(text);
    });
    await eventually('its line', () => linesAbout(gateway, /is back/).length === 1);
  });
});

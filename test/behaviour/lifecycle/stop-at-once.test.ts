// A second SIGTERM: what runs in MySQL ends there, too, and the log has each write with an unknown outcome.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { startProxiedDatabase } from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import type { Settings } from '../../support/ini-text.ts';
import { logShows } from '../../support/log-shows.ts';
import { gone } from '../../support/processes.ts';
import { readMetric } from '../../support/scrape.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({
  prepare: async (own) => {
    await createGate(own);
    await own.query('create table t (n int primary key) engine = innodb');
  },
});

/** Resolves to the time from the second signal to the end, in ms. */
async function stopTwice(gateway: Gateway): Promise<number> {
  process.kill(gateway.pid, 'SIGTERM');
  await eventually('the drain has begun', () => / draining/.test(gateway.log()));
  const from = performance.now();
  process.kill(gateway.pid, 'SIGTERM');
  await gone(gateway.pid);
  return performance.now() - from;
}

/** A gateway of this test behind a proxy. */
async function startBehindProxy(t: TestContext, settings: Settings) {
  const proxy = await startProxiedDatabase(database);
  t.after(proxy.stop);
  const gateway = await startGateway({ database: proxy.target, settings });
  t.after(gateway.stop);
  return { proxy, gateway };
}

/** A stop of a gateway: whether the machine held it up until its bound, and what must be true after it otherwise. */
type Stop = { readonly wasHeldUp: boolean; readonly check: () => void | Promise<void> };

/**
 * A gateway has a second for its end, of which it uses most if MySQL does not answer. A busy machine may take the rest: a stop that was held
 * up, and is not as it must be, is done again, at most four times.
 */
async function checkStop(stop: () => Promise<Stop>): Promise<void> {
  for (let left = 4; ; left -= 1) {
    const { wasHeldUp, check } = await stop();
    try {
      return await check();
    } catch (error) {
      if (!wasHeldUp || left === 0) throw error;
    }
  }
}

/** The lines about writes of which nothing is known, by the ids of their requests. */
function unknownWrites(gateway: Gateway): readonly string[] {
  const log = readFileSync(join(gateway.directory, 'log'), 'utf8');
  return [...log.matchAll(/ outcome=unknown request=(\S+)/g)].map(([, id = '']) => id).sort();
}

test('a second SIGTERM kills the running statements, and the log has the writes whose outcome is unknown', async (t) => {
  const gateway = await startGateway({ database, settings: { workers: 2, pool: 10 } });
  t.after(gateway.stop);
  const gate = await closeGate(database);
  t.after(gate.open);
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  const idle = await beginHeld(gateway);
  assert.equal((await idle.query('insert into t values (100)')).status, 200);
  const busy = await beginHeld(gateway);
  const blocked = (n: number) => `insert into t select ${n} + ${gate.zero}`;
  const named = (id: string) => ({ headers: { 'X-Request-ID': id } });
  const asked = [
    gateway.dbPost({ SQL: blocked(1) }, named('first')),
    gateway.post('/v1/query', { sql: blocked(2) }, named('second')),
    gateway.post('/v1/batch', { statements: [{ sql: blocked(3) }] }, named('batch')),
    busy.query(blocked(4)),
    gateway.dbPost({ SQL: `select ${gate.zero}` }, named('read')),
  ];
  const replies = Promise.allSettled(asked);
  await processlist.started('from gate', asked.length);
  await stopTwice(gateway);
  assert.deepEqual(await processlist.running('from gate'), [], 'nothing runs on in MySQL');
  await replies;
  await gate.open();
  assert.deepEqual(await database.query('select n from t'), []);
  assert.deepEqual(unknownWrites(gateway), ['first', 'second']);
  await logShows(gateway, / stopped .*unknown=2\b/);
});

test('a request that was passed on to another worker is answered before a second SIGTERM ends the gateway', async (t) => {
  await checkStop(async () => {
    const { proxy, gateway } = await startBehindProxy(t, { workers: 2, pool: 4 });
    const held = await beginHeld(gateway);
    const stalled = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
    // On separate connections: some of them reach the worker that does not have the transaction.
    const asked = Array.from({ length: 16 }, held.commit);
    const replies = Promise.allSettled(asked);
    await eventually('all of them have arrived, and one has sent COMMIT', async () => {
      // The scrape is one more.
      const inFlight = await readMetric(gateway, 'dbhttpd_requests_in_flight');
      return stalled.hits() === 1 && inFlight > asked.length;
    });
    const tookMs = await stopTwice(gateway);
    const check = async () => {
      for (const reply of await replies) {
        assert.equal(reply.status, 'fulfilled', 'each client has an answer');
        assert.equal(reply.value.json<{ outcome: string }>().outcome, 'unknown');
      }
    };
    // The request is given up after 700 ms, and the worker that passed it on waits for 150 ms more.
    return { wasHeldUp: tookMs >= 840, check };
  });
});

test('if MySQL cannot be reached, the gateway still ends, and no write goes on unreported', async (t) => {
  await checkStop(async () => {
    const { proxy, gateway } = await startBehindProxy(t, { workers: 1, pool: 2 });
    const gate = await closeGate(database);
    const processlist = await openProcesslist(database);
    t.after(processlist.close);
    const options = { headers: { 'X-Request-ID': 'unreported' } };
    const statements = [{ sql: `insert into t select 5 + ${gate.zero}` }];
    const asked = { statements, atomic: false };
    const reply = gateway.post('/v1/batch', asked, options).catch(() => null);
    await processlist.started('from gate', 1);
    await eventually('the supervisor knows of it', async () => {
      // The scrape is one more.
      return (await readMetric(gateway, 'dbhttpd_requests_in_flight')) > 1;
    });
    proxy.partition();
    await stopTwice(gateway);
    await reply;
    await gate.open();
    const check = () => {
      assert.deepEqual(unknownWrites(gateway), ['unreported']);
      assert.match(gateway.log(), / stopped .*unknown=1\b/);
    };
    // A worker that is late is killed, and the last line counts what it had.
    return { wasHeldUp: / stopped .*requests_lost=1\b/.test(gateway.log()), check };
  });
});

test('a write of a worker that hangs cannot be killed, and the last line of the log counts it', async (t) => {
  const gateway = await startGateway({ database, settings: { workers: 1, pool: 2 } });
  t.after(gateway.stop);
  const gate = await closeGate(database);
  t.after(gate.open);
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  const sql = `insert into t select 6 + ${gate.zero}`;
  const reply = gateway.post('/v1/query', { sql }).catch(() => null);
  await processlist.started('from gate', 1);
  await eventually('the supervisor knows of it', async () => {
    return (await readMetric(gateway, 'dbhttpd_requests_in_flight')) > 0;
  });
  for (const worker of gateway.workers()) process.kill(worker, 'SIGSTOP');
  await stopTwice(gateway);
  await reply;
  await logShows(gateway, / stopped .*requests_lost=[1-9]/);
});

// The queue in front of the pool is bounded, and whoever does not fit into it is told at once.
// Must not know how the queue is made.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Reply } from '../../support/ask.ts';
import { fillPool } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';

/** Each statement runs for a second: none is overlooked. */
const lookMs = 20;
/** By the worker's own clock, from the request's head to the end of its refusal: what others take of the processor meanwhile is not in it. */
const mostRefusalMs = 100;
const rounds = 2;

let database: Database;
let gateway: Gateway;
let processlist: Processlist;

before(async () => {
  database = await startDatabase();
  await createGate(database);
  await createGate(database, 'second_gate');
  processlist = await openProcesslist(database);
  const settings = { workers: 1, pool: 4, queue: 8, access_log: 'json' };
  gateway = await startGateway({ database, settings });
});
after(async () => {
  processlist?.close();
  await gateway?.stop();
  await database.stop();
});

test('pool 4, queue 8, 100 × SLEEP(1): 12 are served, 88 refused at once, never more than 4 run', async (t) => {
  const clients = await Promise.all(Array.from({ length: 100 }, () => openRaw(gateway.port)));
  // Connections of the pool that are just being opened would let four more wait.
  await fillPool(gateway, 4);
  for (let round = 1; round <= rounds; round += 1) {
    await pressOnce(clients, `round-${round}`);
    const lines = await eventually('all are in the log', () => {
      const ofRound = accessLines(`round-${round}`);
      return ofRound.length === clients.length && ofRound;
    });
    const refusals = lines.slice(0, 88);
    assert.ok(
      refusals.every(({ code }) => code === 'QUEUE_FULL'),
      'none waited for a statement',
    );
    const slowest = Math.max(...refusals.map(({ duration_ms }) => duration_ms));
    t.diagnostic(`the slowest refusal: ${slowest} ms`);
    assert.ok(slowest <= mostRefusalMs, `${slowest} ms`);
  }
  for (const client of clients) client.close();
});

/** What the access log has of requests with this id, in the order of their ends. */
function accessLines(id: string): { readonly code: string | null; readonly duration_ms: number }[] {
  return readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"request_id":"${id}"`))
    .map((line) => JSON.parse(line));
}

/** All at once, each for a second of one of four connections. */
async function pressOnce(clients: readonly RawConnection[], id: string): Promise<void> {
  const query = encodeURIComponent(JSON.stringify({ SQL: 'select sleep(1)' }));
  const request = `GET /db?${query} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: ${id}\r\n\r\n`;
  let most = 0;
  let open = true;
  const watching = (async () => {
    while (open) {
      most = Math.max(most, (await processlist.running('sleep(1)')).length);
      // Looking without a pause would take the processor from those who are looked at.
      await pause(lookMs);
    }
  })();
  const replies = await Promise.all(
    clients.map((client) => {
      client.send(request);
      return client.reply();
    }),
  );
  open = false;
  await watching;

  const refused = replies.filter(({ status }) => status === 503);
  assert.equal(replies.filter(({ status }) => status === 200).length, 12);
  assert.equal(refused.length, 88);
  for (const reply of refused) {
    assert.match(reply.body.toString(), /"CODE":"QUEUE_FULL","OUTCOME":"not_executed"/);
    assert.match(reply.header('retry-after') ?? '', /^\d+$/);
  }
  assert.ok(most > 0 && most <= 4, `${most} at once`);
}

test('health and metrics never wait in that queue', async () => {
  const gate = await closeGate(database);
  const busy = Array.from({ length: 12 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  await waiting(8);
  const from = performance.now();
  assert.equal((await gateway.get('/livez')).status, 200);
  assert.equal((await gateway.get('/readyz')).status, 200);
  assert.equal(await readMetric(gateway, 'dbhttpd_queue_length'), 8);
  assert.ok(performance.now() - from < 900);
  await gate.open();
  for (const reply of await Promise.all(busy)) assert.equal(reply.status, 200);
});

test('requests are served in the order in which they came', async () => {
  await database.query('create table turns (place int primary key auto_increment, n int)');
  const gate = await closeGate(database);
  const busy = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  // One free connection for those behind them: they go on to wait at a gate of their own.
  const second = await closeGate(database, 'second_gate');
  const blockers = Array.from({ length: 3 }, () =>
    gateway.dbPost({ SQL: `select ${second.zero}` }),
  );
  await waiting(3);
  const turns: Promise<Reply>[] = [];
  for (let n = 0; n < 5; n += 1) {
    turns.push(gateway.dbPost({ SQL: `insert into turns (n) values (${n})` }));
    await waiting(4 + n);
  }
  await gate.open();
  await Promise.all(busy);
  for (const { status, text } of await Promise.all(turns)) assert.equal(status, 200, text);
  await second.open();
  await Promise.all(blockers);
  const rows = await database.query('select n from turns order by place');
  assert.deepEqual(
    rows.map(({ n }) => n),
    [0, 1, 2, 3, 4],
  );
});

async function waiting(count: number): Promise<void> {
  await eventually(
    `${count} wait`,
    async () => (await readMetric(gateway, 'dbhttpd_queue_length')) === count,
  );
}

test('a request that waited behind a deadline of its own leaves its place to others', async () => {
  const gate = await closeGate(database);
  const busy = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  const impatient = Array.from({ length: 8 }, () =>
    gateway.dbPost({ SQL: 'select 1', TIMEOUT: 100 }),
  );
  for (const reply of await Promise.all(impatient)) {
    assert.equal(outcomeOf(reply), '503 DEADLINE_WAITING not_executed');
  }
  const next = gateway.dbPost({ SQL: 'select 1' });
  await waiting(1);
  await gate.open();
  assert.equal((await next).status, 200);
  await Promise.all(busy);
});

// The queue in front of the pool is bounded, and whoever does not fit into it is told at once.
// Must not know how the queue is made.
// Runs alone: its bounds are of the processor, too.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Reply } from '../support/ask.ts';
import { fillPool } from '../support/busy-pool.ts';
import { outcomeOf } from '../support/db-results.ts';
import { eventually } from '../support/eventually.ts';
import { closeGate, createGate } from '../support/gate.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { openRaw, type RawConnection, type RawReply } from '../support/http.ts';
import { type Database, startDatabase } from '../support/mariadb.ts';
import { openProcesslist, type Processlist } from '../support/processlist.ts';
import { readMetric } from '../support/scrape.ts';

/** Each statement runs for a second: none is overlooked. */
const lookMs = 20;
/** How long a refusal may take, and how often that is tried. */
const mostRefusalMs = 100;
const mostRounds = 6;

let database: Database;
let gateway: Gateway;
let processlist: Processlist;

before(async () => {
  database = await startDatabase();
  await createGate(database);
  await createGate(database, 'second_gate');
  processlist = await openProcesslist(database);
  gateway = await startGateway({ database, settings: { workers: 1, pool: 4, queue: 8 } });
});
after(async () => {
  processlist?.close();
  await gateway?.stop();
  await database.stop();
});

test('pool 4, queue 8, 100 × SLEEP(1): 12 are served, 88 refused at once, never more than 4 run', async () => {
  const clients = await Promise.all(Array.from({ length: 100 }, () => openRaw(gateway.port)));
  // Connections of the pool that are just being opened would let four more wait.
  await fillPool(gateway, 4);
  const ask = (client: RawConnection, sql: string) => {
    const query = encodeURIComponent(JSON.stringify({ SQL: sql }));
    client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return client.reply();
  };
  // Once before it counts: neither the worker nor this process has compiled its code yet.
  await Promise.all(clients.map((client) => ask(client, 'select sleep(0.2)')));
  const slowest: number[] = [];
  // The processor is shared with other machines: what they took of a round is not the gateway's.
  while (slowest.length < mostRounds && !slowest.some((ms) => ms <= mostRefusalMs)) {
    slowest.push(await pressOnce(clients, ask));
  }
  for (const client of clients) client.close();
  assert.ok(Math.min(...slowest) <= mostRefusalMs, `${slowest.join()} ms`);
});

type Asking = (client: RawConnection, sql: string) => Promise<RawReply>;

/** All at once, each for a second of one of four connections; returns the ms of the slowest refusal. */
async function pressOnce(clients: readonly RawConnection[], ask: Asking): Promise<number> {
  let most = 0;
  let open = true;
  const watching = (async () => {
    while (open) {
      most = Math.max(most, (await processlist.running('sleep(1)')).length);
      // Looking without a pause would take the processor from those whose time is measured.
      await pause(lookMs);
    }
  })();
  const answers = await Promise.all(
    clients.map(async (client) => {
      const sentAt = performance.now();
      const reply = await ask(client, 'select sleep(1)');
      return { reply, tookMs: performance.now() - sentAt };
    }),
  );
  open = false;
  await watching;

  const refused = answers.filter(({ reply }) => reply.status === 503);
  assert.equal(answers.filter(({ reply }) => reply.status === 200).length, 12);
  assert.equal(refused.length, 88);
  for (const { reply } of refused) {
    assert.match(reply.body.toString(), /"CODE":"QUEUE_FULL","OUTCOME":"not_executed"/);
    assert.match(reply.header('retry-after') ?? '', /^\d+$/);
  }
  assert.ok(most > 0 && most <= 4, `${most} at once`);
  return Math.max(...refused.map(({ tookMs }) => tookMs));
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

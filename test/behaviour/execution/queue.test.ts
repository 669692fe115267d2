// The queue in front of the pool is bounded, and requests that do not fit are rejected at once.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { fillPool } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const clientCount = 100;
const served = 12;

const { gateway, database } = useGateway(
  { workers: 1, pool: 4, queue: 8, access_log: 'json', max_wait: '1m', statement_timeout: '5m' },
  {
    prepare: async (own) => {
      await createGate(own);
      await createGate(own, 'second_gate');
      await own.query('create procedure two() begin select 1; select 2; end');
      await own.query('create table crowd (served int, most int) engine = innodb');
      await own.query('insert into crowd values (0, 0)');
    },
  },
);

let processlist: Processlist;
beforeEach(async () => {
  processlist = await openProcesslist(database);
});
afterEach(() => processlist?.close());

/** One at a time has the row, and sees in the process list how many run beside it: this holds also when the gate has been opened. */
const countCrowd = `update crowd set served = served + 1, most = greatest(most, (
  select count(*) from information_schema.processlist where db = database() and info like 'update crowd%'))`;

test('pool 4, queue 8, 100 statements: 12 are served, 88 refused at once, never more than 4 run', async () => {
  const clients = await Promise.all(
    Array.from({ length: clientCount }, () => openRaw(gateway.port)),
  );
  // Connections of the pool that are just being opened would let four more wait.
  await fillPool(gateway, 4);
  const gate = await closeGate(database);
  try {
    const SQL = `${countCrowd} where ${gate.zero} = 0`;
    const query = encodeURIComponent(JSON.stringify({ SQL }));
    let refused = 0;
    const replies = clients.map(async (client) => {
      client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: crowd\r\n\r\n`);
      const reply = await client.reply();
      if (reply.status === 200) return;
      assert.equal(reply.status, 503);
      assert.match(reply.body.toString(), /"CODE":"QUEUE_FULL","OUTCOME":"not_executed"/);
      assert.match(reply.header('retry-after') ?? '', /^\d+$/);
      refused += 1;
    });
    await eventually('all but those who have a place are refused', () => {
      return refused === clientCount - served;
    });
    await processlist.started('from gate', 4);
    await waiting(8);
    assert.equal((await processlist.running('from gate')).length, 4);
    await gate.open();
    await Promise.all(replies);
    assert.equal(refused, clientCount - served);
    assert.deepEqual(await database.query('select * from crowd'), [{ served, most: 4 }]);
  } finally {
    await gate.open();
    for (const client of clients) client.close();
  }
  const lines = await eventually('all are in the log', () => {
    const all = accessLines('crowd');
    return all.length === clientCount && all;
  });
  const refusals = lines.slice(0, clientCount - served);
  assert.ok(
    refusals.every(({ code }) => code === 'QUEUE_FULL'),
    'none waited for a statement',
  );
});

/** The lines of the access log for requests with this id, in the order of their ends. */
function accessLines(id: string): { readonly code: string | null }[] {
  return readFileSync(join(gateway.directory, 'log.access.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"request_id":"${id}"`))
    .map((line) => JSON.parse(line));
}

test('health and metrics never wait in that queue', async () => {
  const gate = await closeGate(database);
  const busy = Array.from({ length: 12 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  await waiting(8);
  assert.equal((await gateway.get('/livez')).status, 200);
  assert.equal((await gateway.get('/readyz')).status, 200);
  assert.equal(await readMetric(gateway, 'dbhttpd_queue_length'), 8);
  await gate.open();
  for (const reply of await Promise.all(busy)) assert.equal(reply.status, 200);
});

test('requests are served in the order in which they came', async () => {
  await database.query('create table turns (place int primary key auto_increment, n int)');
  const gate = await closeGate(database);
  const busy = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  // One free connection for the requests behind them, which go on to wait at another gate.
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

test('a request that has waited for as long as it may leaves its place to others', async () => {
  const gate = await closeGate(database);
  const busy = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 4);
  const impatient = Array.from({ length: 8 }, () =>
    gateway.dbPost({ SQL: 'select 1', TIMEOUT: 4_000 }),
  );
  for (const reply of await Promise.all(impatient)) {
    assert.equal(outcomeOf(reply), '503 WAITED_TOO_LONG not_executed');
  }
  const next = gateway.dbPost({ SQL: 'select 1' });
  await waiting(1);
  await gate.open();
  assert.equal((await next).status, 200);
  await Promise.all(busy);
});

test('a client that sends one request after the other is never rejected, however small the queue', async () => {
  const small = await startGateway({ database, settings: { workers: 1, pool: 1, queue: 1 } });
  try {
    for (let round = 0; round < 30; round += 1) {
      // After a CALL the gateway reads the catalogue again, on the pool's one connection.
      for (const SQL of ['call two()', 'select 1']) {
        const { status, text } = await small.dbPost({ SQL });
        assert.equal(status, 200, text);
      }
    }
  } finally {
    await small.stop();
  }
});

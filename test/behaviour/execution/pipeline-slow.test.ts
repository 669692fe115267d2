// A read of a quick shape that is slow this once: it holds nobody up for long, is answered right, and nobody is killed in the pipeline.
// Must not know how the pipeline notices.
// Runs alone: what is held up on a busy machine leaves the pipeline after 30 ms, and is killed then like anything else.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import {
  enterPipeline,
  type Load,
  pipelinedStatements,
  startLoad,
} from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';

const limitMs = 100;
/** The pipeline's limit, and what a busy machine may add to it. */
const heldUpMs = limitMs + 400;
const innocents = 50;

let database: Database;
let gateway: Gateway;
let processlist: Processlist;
/** Those that were begun: one that goes on after its test would be in the way of the next. */
const loads: Load[] = [];

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table innocent (id int primary key, v int);
    create table many (n int primary key);
    insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n from c;
    insert into innocent select n, n * 3 from many where n <= ${innocents}`);
  for (const name of lockable) {
    await database.query(`create table ${name} (id int primary key, v int);
      insert into ${name} values (1, 10), (7, 70)`);
  }
  processlist = await openProcesslist(database);
  gateway = await startGateway({ database, settings: { workers: 1, pool: 6 } });
});
after(async () => {
  processlist?.close();
  await gateway?.stop();
  await database.stop();
});

afterEach(async () => {
  await Promise.allSettled(loads.splice(0).map((load) => load.stop()));
});

const kills = () => readMetric(gateway, 'dbhttpd_kills_total');
const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');

function innocentLoad(): Load {
  const id = (n: number) => 1 + (n % innocents);
  const load = startLoad(
    gateway,
    (n) => `select v from innocent where id = ${id(n)}`,
    (reply: Reply, n) => assert.equal(cellOf(reply), 3 * id(n)),
  );
  loads.push(load);
  return load;
}

/** Brings the innocent reads and `sql` into the pipeline, and goes on asking for the former. */
async function beginWith(sql: string): Promise<Load> {
  await enterPipeline(gateway, sql);
  await enterPipeline(gateway, 'select v from innocent where id = 1');
  return innocentLoad();
}

/**
 * A table for each test: a shape that has left the pipeline stays out for a while. They are there before the gateway, since
 * nothing is in the pipeline while it finds out what has become of tables.
 */
const lockable = [
  'locked_once',
  'locked_for_many',
  'locked_to_deadline',
  'locked_in_lane',
  ...Array.from({ length: 26 }, (_, n) => `locked_ahead_${String.fromCharCode(0x61 + n)}`),
];

function readOf(table: string): string {
  assert.ok(lockable.includes(table), table);
  return `select v from ${table} where id =`;
}

/** Holds a lock on the table, so that reads of it wait, while `act` goes on. */
async function whileLocked(table: string, act: (unlock: () => Promise<void>) => Promise<void>) {
  const locker = await database.connect();
  const unlock = async () => void (await locker.query('unlock tables'));
  try {
    await locker.query(`lock tables ${table} write`);
    await act(unlock);
  } finally {
    locker.destroy();
  }
}

test('one literal that makes it compute for long: others wait no longer than the limit, its answer is right', async () => {
  const sql = (amount: number) =>
    `select count(*) from many a, many b where a.n <= ${amount} and b.n <= ${amount} and sha2(a.n + b.n, 224) <> 'x'`;
  const load = await beginWith(sql(1));
  const before_ = await reruns();
  load.forget();
  const reply = await gateway.dbPost({ SQL: sql(900) });
  const { replies, longestMs } = await load.stop();
  assert.equal(cellOf(reply), 900 * 900);
  assert.ok((await reruns()) > before_, 'it was in the pipeline');
  assert.ok(replies > 10, `${replies} others`);
  assert.ok(longestMs < heldUpMs, `${longestMs} ms`);
});

test('a table that is locked: its reads leave the pipeline at once and wait by themselves; others do not', async () => {
  const read = readOf('locked_once');
  const load = await beginWith(`${read} 1`);
  await whileLocked('locked_once', async (unlock) => {
    const before_ = await reruns();
    load.forget();
    const waiting = gateway.dbPost({ SQL: `${read} 7` });
    await eventually('it runs outside', async () => (await reruns()) > before_);
    const further = gateway.dbPost({ SQL: `${read} 1` });
    await processlist.started('from locked_once', 2);
    assert.equal((await processlist.running('from locked_once')).length, 2);
    load.forget();
    const { replies } = load.seen();
    await eventually('others are answered', () => load.seen().replies > replies + 50);
    const { longestMs } = await load.stop();
    assert.ok(longestMs < heldUpMs, `${longestMs} ms`);
    await unlock();
    assert.equal(cellOf(await waiting), 70);
    assert.equal(cellOf(await further), 10);
  });
});

test('what waits behind a slow read and is not written yet is answered by itself, before that one is given up', async () => {
  await enterPipeline(gateway, 'select v from innocent where id = 1');
  // A machine that pauses hides what was gained: one undisturbed round is enough.
  const tables = lockable.filter((name) => name.startsWith('locked_ahead_'));
  await eventually('they are answered within the limit', async () => {
    const table = tables.shift() ?? assert.fail('no table is left');
    const read = readOf(table);
    await enterPipeline(gateway, `${read} 1`);
    let longestMs = 0;
    await whileLocked(table, async (unlock) => {
      const from = performance.now();
      // One for each session of the pipeline.
      const slow = [1, 7].map((id) => gateway.dbPost({ SQL: `${read} ${id}` }));
      await processlist.started(`from ${table}`, 2);
      const behind = Array.from({ length: 10 }, (_, n) =>
        gateway.dbPost({ SQL: `select v from innocent where id = ${n + 1}` }),
      );
      for (const [n, reply] of (await Promise.all(behind)).entries()) {
        assert.equal(cellOf(reply), 3 * (n + 1));
      }
      longestMs = performance.now() - from;
      await unlock();
      assert.deepEqual((await Promise.all(slow)).map(cellOf), [10, 70]);
    });
    return longestMs < limitMs;
  });
});

test('several reads that meet a lock at once: others are served while it is held, and all are answered after it', async () => {
  const read = readOf('locked_for_many');
  const load = await beginWith(`${read} 1`);
  await whileLocked('locked_for_many', async (unlock) => {
    // Fewer than the pool has, so that others find a place.
    const waiting = Array.from({ length: 3 }, () => gateway.dbPost({ SQL: `${read} 7` }));
    await processlist.started('from locked_for_many', 3);
    load.forget();
    await eventually('others are answered', () => load.seen().replies > 50);
    await unlock();
    for (const reply of await Promise.all(waiting)) assert.equal(cellOf(reply), 70);
  });
  load.forget();
  await eventually('others are answered', () => load.seen().replies > 100);
  assert.ok((await load.stop()).longestMs < heldUpMs);
});

test('a deadline beyond the limit: 504 in time, the kill is for the connection outside, others do not feel it', async () => {
  const read = readOf('locked_to_deadline');
  const load = await beginWith(`${read} 1`);
  await whileLocked('locked_to_deadline', async () => {
    const [killsBefore, rerunsBefore] = [await kills(), await reruns()];
    const from = performance.now();
    const reply = await gateway.dbPost({ SQL: `${read} 7`, TIMEOUT: 300 });
    const ms = performance.now() - from;
    assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
    assert.ok(ms >= 299 && ms < 900, `${ms} ms`);
    assert.ok((await reruns()) > rerunsBefore, 'it was in the pipeline');
    await eventually('one kill', async () => (await kills()) === killsBefore + 1);
  });
  await load.stop();
  assert.equal(await readMetric(gateway, 'dbhttpd_statements_running_on'), 0);
});

test('a deadline within the limit: 504 in time, and nobody is killed', async () => {
  const read = readOf('locked_in_lane');
  const load = await beginWith(`${read} 1`);
  await whileLocked('locked_in_lane', async () => {
    const killsBefore = await kills();
    const from = performance.now();
    const reply = await gateway.dbPost({ SQL: `${read} 7`, TIMEOUT: 50 });
    const ms = performance.now() - from;
    assert.match(
      outcomeOf(reply),
      /^504 DEADLINE_RUNNING failed$|^503 DEADLINE_WAITING not_executed$/,
    );
    assert.ok(ms < 400, `${ms} ms`);
    assert.equal((await processlist.ended('from locked_in_lane')) < 1_000, true);
    assert.equal(await kills(), killsBefore);
  });
  load.forget();
  await eventually('others are answered', () => load.seen().replies > 50);
  await load.stop();
});

for (const leave of ['close', 'reset'] as const) {
  test(`clients that ${leave} while their reads are in the pipeline harm nobody`, async () => {
    const load = await beginWith('select v from innocent where id = 1');
    const connects = await readMetric(gateway, 'dbhttpd_connects_total');
    const killsBefore = await kills();
    const pipelinedBefore = await pipelinedStatements(gateway);
    const body = JSON.stringify({ SQL: 'select v from innocent where id = 2' });
    const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    for (let round = 0; round < 100; round += 1) {
      const connection = await openRaw(gateway.port);
      connection.send(`POST /db HTTP/1.1\r\n${head}\r\n\r\n${body}`);
      connection[leave]();
    }
    const { replies } = await load.stop();
    assert.ok(replies > 10, `${replies} replies`);
    assert.ok((await pipelinedStatements(gateway)) > pipelinedBefore);
    assert.equal(await readMetric(gateway, 'dbhttpd_connects_total'), connects);
    // A read outside, before its place was there, may be killed; none in the pipeline is.
    assert.ok((await kills()) - killsBefore <= 100);
  });
}

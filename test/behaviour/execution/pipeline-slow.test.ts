// A read of a quick shape that is slow this once: it delays no other for long, is answered correctly, and no session is killed in the pipeline.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import type { Rule } from '../../support/database/fault-proxy.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import {
  enterPipeline,
  type Load,
  pipelinedStatements,
  startLoad,
} from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { askAtOnce } from './support/at-once.ts';

const innocents = 50;
const innocent = (id: number) => `select v from innocent where id = ${id}`;

/**
 * A table for each test, because a shape that has left the pipeline stays out for a while. They exist before the gateway, since the
 * pipeline is empty while the gateway finds out what has changed in tables. Tests that a pause of the machine may spoil have several.
 */
const spare = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const spared = ['locked_once', 'locked_to_deadline', 'locked_in_lane', 'ahead'] as const;
const lockable = [
  'locked_for_many',
  ...spared.flatMap((name) => spare.map((letter) => `${name}_${letter}`)),
];

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 6 },
  {
    prepare: async (own) => {
      await own.query(`
        create table innocent (id int primary key, v int);
        create table many (n int primary key);
        insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select n from c;
        insert into innocent select n, n * 3 from many where n <= ${innocents}`);
      for (const name of lockable) {
        await own.query(`create table ${name} (id int primary key, v int);
          insert into ${name} values (1, 10), (7, 70)`);
      }
    },
  },
);

let processlist: Processlist;
/** The running loads: a load that outlives its test would disturb the next one. */
const loads: Load[] = [];
beforeEach(async () => {
  processlist = await openProcesslist(database);
});
afterEach(async () => {
  processlist?.close();
  proxy.release();
  await Promise.allSettled(loads.splice(0).map((load) => load.stop()));
});

/** On a machine that pauses, a request may wait for a session until its deadline. */
const wasNeverRun = /^503 (DEADLINE_WAITING|WAITED_TOO_LONG) not_executed$/;

const kills = () => readMetric(gateway, 'dbhttpd_kills_total');
const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');

function innocentLoad(read = innocent): Load {
  const id = (n: number) => 1 + (n % innocents);
  const load = startLoad(
    gateway,
    (n) => read(id(n)),
    (reply: Reply, n) => assert.equal(cellOf(reply), 3 * id(n)),
  );
  loads.push(load);
  return load;
}

/** Brings the innocent reads and `sql` into the pipeline, and goes on asking for the former. */
async function beginWith(sql: string): Promise<Load> {
  await enterPipeline(gateway, innocent(1));
  await enterPipeline(gateway, sql);
  return innocentLoad();
}

function readOf(table: string): string {
  assert.ok(lockable.includes(table), table);
  return `select v from ${table} where id =`;
}

/** Calls `act` with one table after the other, until it says that its read was in the pipeline. */
async function inPipelineOnce(
  name: (typeof spared)[number],
  act: (read: string, table: string) => Promise<boolean>,
): Promise<void> {
  for (const letter of spare) {
    const table = `${name}_${letter}`;
    if (await act(readOf(table), table)) return;
  }
  assert.fail(`no read of ${name} was in the pipeline`);
}

/**
 * Waits until the read of a locked table has left the pipeline and runs outside, and resolves to true; or to false, if it has run for so
 * long in one place that it never was in the pipeline. `before_` is the number of reruns before it.
 */
function hasLeftPipeline(table: string, before_: number): Promise<boolean> {
  const neverSeconds = 4;
  const look = async () => {
    const running = await processlist.running(`from ${table}`);
    if ((await reruns()) > before_) return { hasLeft: true };
    const isOutside = running.some((thread) => thread.runningSeconds >= neverSeconds);
    return isOutside ? { hasLeft: false } : null;
  };
  return eventually('it runs outside', look).then(({ hasLeft }) => hasLeft);
}

/** Holds a lock on the table, so that reads of it wait, while `act` goes on. */
async function whileLocked<Result>(
  table: string,
  act: (unlock: () => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const locker = await database.connect();
  const unlock = async () => void (await locker.query('unlock tables'));
  try {
    await locker.query(`lock tables ${table} write`);
    return await act(unlock);
  } finally {
    locker.destroy();
  }
}

test('one literal that makes it compute for long: others are answered meanwhile, its answer is right', async () => {
  // A shape that was slow once on a busy machine stays out of the pipeline for a while: then another one is tried.
  for (const name of spare) {
    const sql = (amount: number) =>
      `select count(*) as ${name} from many a, many b where a.n <= ${amount} and b.n <= ${amount} and sha2(a.n + b.n, 224) <> 'x'`;
    const load = await beginWith(sql(1));
    const before_ = await reruns();
    const { replies } = load.seen();
    const reply = await gateway.dbPost({ SQL: sql(900) });
    const meanwhile = load.seen().replies - replies;
    assert.equal(cellOf(reply), 900 * 900);
    assert.ok(meanwhile > 10, `${meanwhile} others`);
    if ((await reruns()) > before_) return;
    await load.stop();
  }
  assert.fail('it was never in the pipeline');
});

test('a table that is locked: its reads leave the pipeline at once and wait by themselves; others do not', async () => {
  await inPipelineOnce('locked_once', async (read, table) => {
    const load = await beginWith(`${read} 1`);
    const hasLeft = await whileLocked(table, async (unlock) => {
      const before_ = await reruns();
      const waiting = gateway.dbPost({ SQL: `${read} 7` });
      if (!(await hasLeftPipeline(table, before_))) return false;
      const further = gateway.dbPost({ SQL: `${read} 1` });
      await processlist.started(`from ${table}`, 2);
      assert.equal((await processlist.running(`from ${table}`)).length, 2);
      const { replies } = load.seen();
      await eventually('others are answered', () => load.seen().replies > replies + 50);
      await unlock();
      assert.equal(cellOf(await waiting), 70);
      assert.equal(cellOf(await further), 10);
      return true;
    });
    await load.stop();
    return hasLeft;
  });
});

test('statements that wait behind a slow read, and are not written yet, run elsewhere before it is given up', async () => {
  // One for each session of the pipeline; then all that is written together with them, and more.
  const slowReads = [1, 7];
  const behind = 90;
  const late = 10;
  await inPipelineOnce('ahead', async (read) => {
    await enterPipeline(gateway, `${read} 1`);
    const slow = slowReads.map((id) => `${read} ${id}`);
    const others = Array.from({ length: behind }, (_, n) => 1 + (n % innocents));
    const requests = [...slow, ...others.map(innocent)].map((SQL) => ({ SQL }));
    let rule: Rule | undefined;
    let connections = 0;
    const pending = await askAtOnce(gateway, requests, async () => {
      await enterPipeline(gateway, innocent(1));
      rule = proxy.on((sql) => slow.includes(sql), { kind: 'hold' });
      connections = proxy.connections().total;
    });
    const last = await Promise.all(pending.slice(-late));
    assert.deepEqual(
      last.map(cellOf),
      others.slice(-late).map((id) => 3 * id),
    );
    // A session that is given up is replaced.
    const isHeld = rule?.hits() === slow.length && proxy.connections().total === connections;
    rule?.remove();
    proxy.release();
    const replies = await Promise.all(pending);
    assert.deepEqual(
      replies.slice(slow.length).map(cellOf),
      others.map((id) => 3 * id),
    );
    // Held for too long, they are lost.
    if (isHeld) assert.deepEqual(replies.slice(0, slow.length).map(cellOf), [10, 70]);
    return isHeld;
  });
});

test('several reads that meet a lock at once: others are served while it is held, and all are answered after it', async () => {
  const read = readOf('locked_for_many');
  const load = await beginWith(`${read} 1`);
  const served = async (what: string) => {
    const { replies } = load.seen();
    await eventually(what, () => load.seen().replies > replies + 50);
  };
  await whileLocked('locked_for_many', async (unlock) => {
    // Fewer than the pool has, so that others find a place.
    const waiting = Array.from({ length: 3 }, () => gateway.dbPost({ SQL: `${read} 7` }));
    await processlist.started('from locked_for_many', 3);
    await served('others are answered');
    await unlock();
    for (const reply of await Promise.all(waiting)) assert.equal(cellOf(reply), 70);
  });
  await served('others are answered after it');
});

test('a deadline beyond the limit: 504 in time, the kill is for the connection outside, others do not feel it', async () => {
  await inPipelineOnce('locked_to_deadline', async (read, table) => {
    const load = await beginWith(`${read} 1`);
    const wasInPipeline = await whileLocked(table, async () => {
      const [killsBefore, rerunsBefore] = [await kills(), await reruns()];
      const sentBefore = proxy.statements.length;
      const reply = await gateway.dbPost({ SQL: `${read} 7`, TIMEOUT: 500 });
      if (wasNeverRun.test(outcomeOf(reply))) return false;
      assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
      // It is repeated if its answer is late, always for the same connection.
      const sent = () =>
        proxy.statements.slice(sentBefore).filter((sql) => /^kill query/i.test(sql));
      await eventually('a kill is sent', () => sent().length > 0);
      await eventually('it is counted', async () => (await kills()) > killsBefore);
      assert.equal(new Set(sent()).size, 1, sent().join('\n'));
      return (await reruns()) > rerunsBefore;
    });
    await load.stop();
    return wasInPipeline;
  });
  await eventually(
    'nothing runs on',
    async () => (await readMetric(gateway, 'dbhttpd_statements_running_on')) === 0,
  );
});

test('a deadline within the limit: 504 in time, and no session is killed', async () => {
  await inPipelineOnce('locked_in_lane', async (read, table) => {
    await enterPipeline(gateway, `${read} 1`);
    return whileLocked(table, async () => {
      const killsBefore = await kills();
      await enterPipeline(gateway, innocent(1));
      const before_ = await pipelinedStatements(gateway);
      const reply = await gateway.dbPost({ SQL: `${read} 7`, TIMEOUT: 50 });
      if (!wasNeverRun.test(outcomeOf(reply))) {
        assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
      }
      await processlist.ended(`from ${table}`);
      const wasInPipeline = (await pipelinedStatements(gateway)) > before_;
      if (wasInPipeline) assert.equal(await kills(), killsBefore);
      return wasInPipeline;
    });
  });
});

for (const leave of ['close', 'reset'] as const) {
  test(`clients that ${leave} while their reads are in the pipeline harm no other`, async () => {
    const read = (id: number) => `select v as v_${leave} from innocent where id = ${id}`;
    await enterPipeline(gateway, read(1));
    const load = innocentLoad(read);
    const connects = await readMetric(gateway, 'dbhttpd_connects_total');
    const killsBefore = await kills();
    const body = JSON.stringify({ SQL: read(2) });
    const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const leaving = 40;
    for (let round = 0; round < leaving; round += 1) {
      const connection = await openRaw(gateway.port);
      connection.send(`POST /db HTTP/1.1\r\n${head}\r\n\r\n${body}`);
      connection[leave]();
    }
    const { replies } = load.seen();
    await eventually('others are answered', () => load.seen().replies > replies + 10);
    await load.stop();
    await enterPipeline(gateway, read(1));
    assert.equal(await readMetric(gateway, 'dbhttpd_connects_total', { result: 'failed' }), 0);
    // A read outside, before its place was there, may be killed; none in the pipeline is.
    assert.ok((await kills()) - killsBefore <= leaving);
    assert.ok((await readMetric(gateway, 'dbhttpd_connects_total')) <= Math.max(connects, 6));
  });
}

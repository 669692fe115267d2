// A deadline holds: waiting, connecting and running together; what runs on after it is killed, or reported.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { fillPool } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

/** A second by the contract; four times as much is for a busy machine. */
const maxLateMs = 4000;

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 2 },
  {
    prepare: async (own) => {
      await createGate(own);
      await own.query(`
        create table t (id int primary key, v int); insert into t values (1, 0);
        create table many (n int) as
          with recursive c (n) as (select 1 union all select n + 1 from c where n < 900) select n from c`);
    },
  },
);

let processlist: Processlist;
beforeEach(async () => {
  processlist = await openProcesslist(database);
  await eventually('the control connection is there', isControlled);
});
afterEach(() => processlist?.close());

const isControlled = async () => (await readMetric(gateway, 'dbhttpd_control_connected')) === 1;

/** Asks, and fails unless the reply is a 504 between the deadline and a second after it; a busy machine has four. */
async function assertTimely(SQL: string, expected: string): Promise<void> {
  const TIMEOUT = 400;
  const from = performance.now();
  const reply = await gateway.dbPost({ SQL, TIMEOUT });
  const tookMs = performance.now() - from;
  assert.equal(outcomeOf(reply), expected, SQL);
  assert.ok(tookMs >= TIMEOUT - 1 && tookMs <= TIMEOUT + maxLateMs, `${SQL}: ${tookMs} ms`);
}

test('a read that runs too long is a 504 in time, killed, and its connection is kept', async () => {
  await fillPool(gateway, 2);
  const connectsBefore = await readMetric(gateway, 'dbhttpd_connects_total');
  for (const SQL of [
    'select sleep(1000)',
    'select sum(a.n + b.n + c.n + d.n) from many a, many b, many c, many d',
    'select benchmark(100000000000, sha2(1, 224))',
    'select sleep(1000) union select 2',
    'select sleep(1000); select 2',
  ]) {
    await assertTimely(SQL, '504 DEADLINE_RUNNING failed');
    assert.ok((await processlist.ended(SQL.slice(0, 20))) < maxLateMs);
  }
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  assert.equal(await readMetric(gateway, 'dbhttpd_connects_total'), connectsBefore);
});

test('a write that runs too long is unknown, and the database decides its end', async () => {
  await assertTimely('update t set v = v + 1 + sleep(1000)', '504 DEADLINE_RUNNING unknown');
  await processlist.ended('sleep(1000)');
  await assertTimely('do sleep(1000)', '504 DEADLINE_RUNNING unknown');
  await assertTimely(
    'begin; update t set v = 9; select sleep(1000)',
    '504 DEADLINE_RUNNING unknown',
  );
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select v from t where id = 1' })), 0);
});

test('a write that waits for a lock is a 504 in time and does not happen later', async () => {
  const other = await database.connect();
  await other.query('begin; select * from t where id = 1 for update');
  await assertTimely('update t set v = 5 where id = 1', '504 DEADLINE_RUNNING unknown');
  await processlist.ended('update t set v = 5');
  await other.query('commit');
  other.destroy();
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select v from t where id = 1' })), 0);
});

test('TIMEOUT cannot raise statement_timeout', async () => {
  const strict = await startGateway({
    database,
    settings: { workers: 1, pool: 1, statement_timeout: '300ms' },
  });
  // The measured time is the statement's, without that of a first connection.
  await eventually(
    'it serves',
    async () => (await strict.dbPost({ SQL: 'select 1' })).status === 200,
  );
  const from = performance.now();
  const reply = await strict.dbPost({ SQL: 'select sleep(1000)', TIMEOUT: 60_000 });
  assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
  const tookMs = performance.now() - from;
  assert.ok(tookMs <= 300 + maxLateMs, `${tookMs} ms`);
  await strict.stop();
});

test('a wait that takes a quarter of the deadline is a 503, and the statement never runs', async () => {
  const gate = await closeGate(database);
  const busy = [0, 1].map(() => gateway.dbPost({ SQL: `select ${gate.zero}` }));
  await processlist.started('from gate', 2);
  const reply = await gateway.dbPost({ SQL: 'insert into t values (77, 0)', TIMEOUT: 4_000 });
  assert.equal(outcomeOf(reply), '503 WAITED_TOO_LONG not_executed');
  assert.ok(reply.headers['retry-after'] !== undefined);
  await gate.open();
  await Promise.all(busy);
  assert.deepEqual(rowsOf(await gateway.dbPost({ SQL: 'select * from t where id = 77' })), []);
});

test('an answer that comes after the kill is not trusted, be it a success', async () => {
  // The statement takes no time, its answer is held back: to the gateway it looks like a SLEEP that says 1.
  for (const [SQL, outcome] of [
    ['select 1 as late', 'failed'],
    ['update t set v = 3 where id = 1 /* late */', 'unknown'],
  ] as const) {
    const rule = proxy.on(/late/, { kind: 'stall' });
    const kill = proxy.on(/^kill/i, { kind: 'delay', ms: 0 });
    const timely = assertTimely(SQL, `504 DEADLINE_RUNNING ${outcome}`);
    await Promise.race([timely, eventually('a kill is sent', () => kill.hits() > 0)]);
    proxy.release();
    await timely;
    rule.remove();
    kill.remove();
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 6' })), 6);
  }
});

test('without a control connection the 504 is in time all the same, and a gauge counts the statements that run on', async () => {
  const gauge = () => readMetric(gateway, 'dbhttpd_statements_running_on');
  const gate = await closeGate(database);
  try {
    for (const [runningOn, fault] of [
      [1, { kind: 'cut-request' }],
      [2, { kind: 'drop-reply' }],
    ] as const) {
      const rule = proxy.on(/^kill/i, fault);
      await eventually('the control connection is there', isControlled);
      await assertTimely(`select ${gate.zero}`, '504 DEADLINE_RUNNING failed');
      await eventually('a kill was tried', () => rule.hits() > 0);
      // At once: a statement that may run on takes no connection of the pool with it.
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
      await eventually('the gauge tells it', async () => (await gauge()) === runningOn);
      rule.remove();
    }
  } finally {
    await gate.open();
  }
  await eventually('the gauge falls', async () => (await gauge()) === 0);
});

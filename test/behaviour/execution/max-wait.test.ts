// No request waits for a connection for longer than max_wait, or a quarter of its deadline, wherever it waits. The log reports it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { fillPool, waiting } from '../../support/busy-pool.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { driverSettings, postAsDriver } from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld, summarise } from '../../support/held.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const pool = 2;
const tooLong = '503 WAITED_TOO_LONG not_executed';

const { gateway, database } = useGateway(
  { workers: 1, pool, max_wait: '200ms', coalesce: 'on' },
  {
    prepare: async (own) => {
      await createGate(own);
      await own.query('create table t (n int) engine = innodb');
    },
  },
);

/** Keeps all of a gateway's sessions busy until the gate is opened. */
async function occupyAll(busy: Pick<Gateway, 'dbPost'>): Promise<Gate> {
  const gate = await closeGate(database);
  const processlist = await openProcesslist(database);
  try {
    for (let n = 0; n < pool; n += 1) {
      // Not identical: those would share one session.
      void busy.dbPost({ SQL: `select ${n}, ${gate.zero}` }).catch(() => undefined);
    }
    await processlist.started('from gate', pool);
  } finally {
    await processlist.close();
  }
  return gate;
}

function readLog(): string {
  return readFileSync(join(gateway.directory, 'log'), 'utf8');
}

test('a request that waits for a connection is rejected when max_wait is over, and never reaches MySQL', async () => {
  await fillPool(gateway, pool);
  const gate = await occupyAll(gateway);
  try {
    const sql = 'insert into t values (1)';
    const statements = [{ sql }];
    const read = { SQL: 'select 1' };
    const db = [gateway.db({ SQL: sql }), gateway.dbPost(read), gateway.dbPost(read)];
    const v1 = [
      gateway.post('/v1/query', { sql }),
      gateway.post('/v1/batch', { statements }),
      gateway.post('/v1/transaction', {}),
    ];
    for (const reply of await Promise.all(db)) {
      assert.equal(outcomeOf(reply), tooLong);
      assertRetryAfter(reply);
    }
    for (const reply of await Promise.all(v1)) {
      assert.equal(summarise(reply), tooLong);
      assert.equal(reply.json<{ retryable: boolean }>().retryable, true);
      assertRetryAfter(reply);
    }
  } finally {
    await gate.open();
  }
  assert.deepEqual(await database.query('select count(*) as n from t'), [{ n: '0' }]);
});

function assertRetryAfter({ headers }: Reply): void {
  assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/);
}

test('a transaction waits no longer for others to end than for a connection', async () => {
  const held = await beginHeld(gateway);
  const second = await gateway.post('/v1/transaction', {});
  assert.equal(summarise(second), tooLong);
  assert.deepEqual(await held.rows("select 'x'"), [['x']]);
  await held.rollback();
});

test('a driver gets an error if there is no connection', async () => {
  const settings = { ...driverSettings, workers: 1, pool: 1, max_wait: '200ms' };
  const own = await startGateway({ database, settings });
  const gate = await closeGate(database);
  const processlist = await openProcesslist(database);
  try {
    // Its first connection may take longer than a request waits.
    await eventually('it has come', async () => {
      const { body } = await postAsDriver(own, { query: 'select 1' });
      return body.error === undefined;
    });
    const busy = postAsDriver(own, { query: `select ${gate.zero}` });
    await processlist.started('from gate', 1);
    const { body } = await postAsDriver(own, { query: 'select 1' });
    assert.match(JSON.stringify(body), /max_wait.*\(errno 1040\) \(sqlstate 08004\)/);
    await gate.open();
    await busy;
  } finally {
    await gate.open();
    await processlist.close();
    await own.stop();
  }
});

test('a quarter of the deadline bounds the wait too', async () => {
  const settings = { workers: 1, pool, max_wait: '30s' };
  const own = await startGateway({ database, settings });
  let gate: Gate | null = null;
  try {
    await fillPool(own, pool);
    gate = await occupyAll(own);
    const patient = own.dbPost({ SQL: 'select 1', TIMEOUT: 30_000 });
    await waiting(own, 1);
    assert.equal(outcomeOf(await own.dbPost({ SQL: 'select 1', TIMEOUT: 6_000 })), tooLong);
    await gate.open();
    assert.equal((await patient).status, 200);
  } finally {
    await gate?.open();
    await own.stop();
  }
});

test('an identical read goes on waiting in the place of the one that it followed', async () => {
  const settings = { workers: 1, pool, max_wait: '30s', coalesce: 'on' };
  const own = await startGateway({ database, settings });
  let gate: Gate | null = null;
  try {
    await fillPool(own, pool);
    gate = await occupyAll(own);
    const request = { SQL: 'select n from t' };
    // It waits for 5 s, in which the others must arrive.
    const leader = own.dbPost({ ...request, TIMEOUT: 20_000 });
    await waiting(own, 1);
    const follower = own.dbPost({ ...request, TIMEOUT: 30_000 });
    await waiting(own, 2);
    const behind = own.dbPost({ SQL: 'select 2', TIMEOUT: 30_000 });
    assert.equal(outcomeOf(await leader), tooLong);
    await waiting(own, 2);
    await gate.open();
    assert.deepEqual([(await follower).status, (await behind).status], [200, 200]);
  } finally {
    await gate?.open();
    await own.stop();
  }
});

test('the log has the beginning of an overload, and its sums at the end', async () => {
  const gate = await occupyAll(gateway);
  const rejected = await Promise.all(
    Array.from({ length: 20 }, (_, n) => gateway.dbPost({ SQL: `select ${n}` })),
  );
  await gate.open();
  for (const reply of rejected) assert.equal(outcomeOf(reply), tooLong);
  const begun = await eventually('the log has its beginning', () =>
    readLog().match(/ WARN .*an overload begins.*code=WAITED_TOO_LONG.*pool=2/i),
  );
  assert.ok(begun);
});

test('rejected requests do not count in the latency of served ones', async () => {
  const count = () => readMetric(gateway, 'dbhttpd_request_duration_seconds_count');
  const waited = () =>
    readMetric(gateway, 'dbhttpd_phase_duration_seconds_count', { phase: 'waiting' });
  const rejections = () =>
    readMetric(gateway, 'dbhttpd_failures_total', { code: 'WAITED_TOO_LONG' });
  const gate = await occupyAll(gateway);
  const before = [await count(), await waited(), await rejections()];
  for (let n = 0; n < 3; n += 1) {
    assert.equal(outcomeOf(await gateway.dbPost({ SQL: 'select 1' })), tooLong);
  }
  const after = [await count(), await waited(), await rejections()];
  await gate.open();
  assert.deepEqual(
    after.map((value, at) => value - (before[at] ?? 0)),
    [0, 0, 3],
  );
});

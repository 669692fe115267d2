// Quick reads share connections: each reply belongs to its request, errors included; the pipeline opens and closes.
// Must not know how statements are put together on a connection.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, documentOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { enterPipeline, pipelinedStatements, startLoad } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';

const rows = 5_000;
const clients = 24;

let database: Database;

before(async () => {
  database = await startDatabase();
  await createGate(database);
  await database.query('create table t (id int primary key, v varchar(40))');
  const values = Array.from({ length: rows }, (_, id) => `(${id},'value of ${id}')`);
  await database.query(`insert into t values ${values.join(',')}`);
});
after(() => database.stop());

async function withGateway(
  settings: { readonly workers: number; readonly pool: number },
  use: (gateway: Gateway) => Promise<void>,
): Promise<void> {
  const gateway = await startGateway({ database, settings });
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

test('a table that somebody else has created is known soon, and its reads are pipelined', async () => {
  await withGateway({ workers: 1, pool: 4 }, async (gateway) => {
    await enterPipeline(gateway, 'select v from t where id = 1');
    await database.query('create table created_beside (id int primary key, v int)');
    await enterPipeline(gateway, 'select v from created_beside where id = 1');
  });
});

/** Calls `act` for each number below `count`, `clients` at a time. */
async function forEach(count: number, act: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next < count) await act(next++);
    }),
  );
}

test('thousands of different reads on two workers: every reply is the one that was asked for', () =>
  withGateway({ workers: 2, pool: 4 }, async (gateway) => {
    const reads = 2_000;
    await forEach(reads, async (id) => {
      const reply = await gateway.dbPost({ SQL: `select id, v from t where id = ${id}` });
      assert.deepEqual(rowsOf(reply), [[id, `value of ${id}`]]);
    });
    const inPipeline = await pipelinedStatements(gateway);
    // On a busy machine most are not quick.
    assert.ok(inPipeline > 50, `${inPipeline} of ${reads} in the pipeline`);
    assert.ok((await readMetric(gateway, 'dbhttpd_pipeline_connections')) <= 4);
    assert.equal(await readMetric(gateway, 'dbhttpd_outcomes_total', { outcome: 'ok' }), reads);
  }));

test('errors among them reach only those who made them', () =>
  withGateway({ workers: 2, pool: 4 }, async (gateway) => {
    // Overflows with any number but 0, so that the shape can be quick before it fails.
    const sum = (n: number, form: number) =>
      `select 9223372036854775807 + ${n} as sum${'x'.repeat(form)}`;
    let errors = 0;
    await forEach(rows, async (n) => {
      if (n % 5 > 0) {
        const reply = await gateway.dbPost({ SQL: `select id, v from t where id = ${n}` });
        assert.deepEqual(rowsOf(reply), [[n, `value of ${n}`]]);
        return;
      }
      const addend = n % 100 === 0 ? 1 : 0;
      const reply = documentOf(await gateway.dbPost({ SQL: sum(addend, 1 + Math.floor(n / 500)) }));
      assert.equal(reply.MYSQL_ERRNO, addend === 1 ? 1690 : undefined, JSON.stringify(reply));
      errors += addend;
    });
    assert.equal(await readMetric(gateway, 'dbhttpd_outcomes_total', { outcome: 'error' }), errors);
    assert.ok((await pipelinedStatements(gateway)) > 50);
  }));

test('a pool too small for a pipeline has none', () =>
  withGateway({ workers: 1, pool: 3 }, async (gateway) => {
    await forEach(200, async (id) => {
      const reply = await gateway.dbPost({ SQL: `select v from t where id = ${id}` });
      assert.equal(cellOf(reply), `value of ${id}`);
    });
    assert.equal(await pipelinedStatements(gateway), 0);
    assert.equal(await readMetric(gateway, 'dbhttpd_pipeline_connections'), 0);
  }));

test('an idle pipeline gives its connections back, and they serve slow statements', () =>
  withGateway({ workers: 1, pool: 4 }, async (gateway) => {
    await enterPipeline(gateway, 'select v from t where id = 1');
    assert.equal(await readMetric(gateway, 'dbhttpd_pipeline_connections'), 2);
    const slow = Array.from({ length: 8 }, (_, n) =>
      gateway.dbPost({ SQL: `select sleep(0.4), ${n}` }),
    );
    for (const [n, reply] of (await Promise.all(slow)).entries()) {
      assert.deepEqual(rowsOf(reply), [[0, n]]);
    }
    await eventually(
      'the pipeline is empty',
      async () => (await readMetric(gateway, 'dbhttpd_pipeline_connections')) === 0,
    );
    await eventually(
      'all are idle',
      async () => (await readMetric(gateway, 'dbhttpd_pool_connections', { state: 'idle' })) === 4,
    );
    const gate = await closeGate(database);
    const all = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
    const processlist = await openProcesslist(database);
    await processlist.started('from gate', 4);
    processlist.close();
    await gate.open();
    for (const reply of await Promise.all(all)) assert.equal(cellOf(reply), 0);
  }));

test('a busy pipeline leaves the other connections to slow statements', () =>
  withGateway({ workers: 1, pool: 4 }, async (gateway) => {
    await enterPipeline(gateway, 'select v from t where id = 1');
    const load = startLoad(
      gateway,
      (n) => `select v from t where id = ${n % rows}`,
      (reply, n) => assert.equal(cellOf(reply), `value of ${n % rows}`),
    );
    const from = performance.now();
    const slow = Array.from({ length: 2 }, () => gateway.dbPost({ SQL: 'select sleep(0.5)' }));
    for (const reply of await Promise.all(slow)) assert.equal(cellOf(reply), 0);
    const ms = performance.now() - from;
    const { replies } = await load.stop();
    assert.ok(ms < 1_500, `${ms} ms`);
    assert.ok(replies > 2, `${replies} replies meanwhile`);
  }));

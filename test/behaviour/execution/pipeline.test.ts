// Quick reads share connections: each reply belongs to its request, errors included; the pipeline opens and closes.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, documentOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { enterPipeline, pipelinedStatements, startLoad } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const rows = 300;
const clients = 24;
const known = 'select v from t where id = 1';

const database = useDatabase({
  prepare: async (own) => {
    await createGate(own);
    await own.query('create table t (id int primary key, v varchar(40))');
    const values = Array.from({ length: rows }, (_, id) => `(${id},'value of ${id}')`);
    await own.query(`insert into t values ${values.join(',')}`);
  },
});

/** Makes the tests of a suite share one gateway. */
function shareGateway(settings: { readonly workers: number; readonly pool: number }) {
  let gateway: Gateway | undefined;
  before(async () => {
    gateway = await startGateway({ database, settings });
  });
  after(() => gateway?.stop());
  return () => gateway ?? assert.fail('not started yet');
}

/** Calls `act` for each number below `count`, `clients` at a time. */
async function forEach(count: number, act: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (next < count) await act(next++);
    }),
  );
}

/** Repeats the round until this many statements have run in the pipeline: on a busy machine most are not quick. */
async function untilPipelined(
  gateway: Gateway,
  count: number,
  round: () => Promise<void>,
): Promise<void> {
  const before_ = await pipelinedStatements(gateway);
  const maxRounds = 50;
  for (let n = 0; n < maxRounds; n += 1) {
    await round();
    if ((await pipelinedStatements(gateway)) - before_ >= count) return;
  }
  assert.fail(`not ${count} in the pipeline within ${maxRounds} rounds`);
}

const outcomes = (gateway: Gateway, outcome: string) =>
  readMetric(gateway, 'dbhttpd_outcomes_total', { outcome });

describe('two workers', () => {
  const gatewayOf = shareGateway({ workers: 2, pool: 4 });

  test('many different reads on two workers: every reply belongs to its request', async () => {
    const gateway = gatewayOf();
    const okBefore = await outcomes(gateway, 'ok');
    let reads = 0;
    await untilPipelined(gateway, 100, () =>
      forEach(rows, async (id) => {
        const reply = await gateway.dbPost({ SQL: `select id, v from t where id = ${id}` });
        assert.deepEqual(rowsOf(reply), [[id, `value of ${id}`]]);
        reads += 1;
      }),
    );
    assert.ok((await readMetric(gateway, 'dbhttpd_pipeline_connections')) <= 4);
    assert.equal((await outcomes(gateway, 'ok')) - okBefore, reads);
  });

  test('read-only requests share connections too, and nothing is written for them', async () => {
    const gateway = gatewayOf();
    await untilPipelined(gateway, 100, () =>
      forEach(rows, async (id) => {
        const SQL = `select v, id from t where id = ${id}`;
        const reply = await gateway.dbPost({ SQL, READ_ONLY: true });
        assert.deepEqual(rowsOf(reply), [[`value of ${id}`, id]]);
      }),
    );
    const refused = await gateway.dbPost({ SQL: 'delete from t', READ_ONLY: true });
    assert.equal(documentOf(refused, 403).CODE, 'READ_ONLY');
  });

  test('errors reach only the requests that caused them', async () => {
    const gateway = gatewayOf();
    // Overflows with any number but 0, so that the shape can be quick before it fails.
    const sum = (n: number, form: number) =>
      `select 9223372036854775807 + ${n} as sum${'x'.repeat(form)}`;
    const errorsBefore = await outcomes(gateway, 'error');
    let errors = 0;
    await untilPipelined(gateway, 100, () =>
      forEach(rows, async (n) => {
        if (n % 5 > 0) {
          const reply = await gateway.dbPost({ SQL: `select id, v from t where id = ${n}` });
          assert.deepEqual(rowsOf(reply), [[n, `value of ${n}`]]);
          return;
        }
        const addend = n % 50 === 0 ? 1 : 0;
        const SQL = sum(addend, 1 + Math.floor(n / 60));
        const reply = documentOf(await gateway.dbPost({ SQL }));
        assert.equal(reply.MYSQL_ERRNO, addend === 1 ? 1690 : undefined, JSON.stringify(reply));
        errors += addend;
      }),
    );
    assert.equal((await outcomes(gateway, 'error')) - errorsBefore, errors);
  });
});

describe('one worker', () => {
  const gatewayOf = shareGateway({ workers: 1, pool: 4 });
  const connections = () => readMetric(gatewayOf(), 'dbhttpd_pipeline_connections');

  test('a table that another client has created is known soon, and its reads are pipelined', async () => {
    await enterPipeline(gatewayOf(), known);
    await database.query('create table created_beside (id int primary key, v int)');
    await enterPipeline(gatewayOf(), 'select v from created_beside where id = 1');
  });

  test('an idle pipeline gives its connections back, and they serve slow statements', async () => {
    const gateway = gatewayOf();
    await eventually('the pipeline has its two', async () => {
      await enterPipeline(gateway, known);
      return (await connections()) === 2;
    });
    const processlist = await openProcesslist(database);
    const gate = await closeGate(database);
    try {
      const all = Array.from({ length: 4 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
      await processlist.started('from gate', 4);
      assert.equal(await connections(), 0);
      await gate.open();
      for (const reply of await Promise.all(all)) assert.equal(cellOf(reply), 0);
    } finally {
      await gate.open();
      processlist.close();
    }
  });

  test('a busy pipeline leaves the other connections to slow statements', async () => {
    const gateway = gatewayOf();
    await enterPipeline(gateway, known);
    const load = startLoad(
      gateway,
      (n) => `select v from t where id = ${n % rows}`,
      (reply, n) => assert.equal(cellOf(reply), `value of ${n % rows}`),
    );
    const processlist = await openProcesslist(database);
    const gate = await closeGate(database);
    try {
      const slow = Array.from({ length: 2 }, () => gateway.dbPost({ SQL: `select ${gate.zero}` }));
      await processlist.started('from gate', 2);
      const { replies } = load.seen();
      await eventually('others are answered meanwhile', () => load.seen().replies > replies + 20);
      await gate.open();
      for (const reply of await Promise.all(slow)) assert.equal(cellOf(reply), 0);
    } finally {
      await gate.open();
      processlist.close();
      await load.stop();
    }
  });
});

describe('a small pool', () => {
  const gatewayOf = shareGateway({ workers: 1, pool: 3 });

  test('a pool too small for a pipeline has none', async () => {
    const gateway = gatewayOf();
    await forEach(100, async (id) => {
      const reply = await gateway.dbPost({ SQL: `select v from t where id = ${id}` });
      assert.equal(cellOf(reply), `value of ${id}`);
    });
    assert.equal(await pipelinedStatements(gateway), 0);
    assert.equal(await readMetric(gateway, 'dbhttpd_pipeline_connections'), 0);
  });
});

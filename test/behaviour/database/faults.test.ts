// The database restarts, freezes, dies or is down at the start: everything is answered, and well again afterwards.
// Must not know how the gateway reconnects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { contradictions, summary, type Told, toldBy } from '../../support/histories/history.ts';
import { readMetric } from '../../support/scrape.ts';

const external = process.env.DBHTTPD_TEST_MYSQL !== undefined;
const options = external
  ? { skip: 'DBHTTPD_TEST_MYSQL names a server that these tests may not stop or configure' }
  : {};

let database: Database;

before(async () => {
  if (!external) database = await startDatabase({ own: true });
});
after(() => database?.stop());

/** Calls `act` at a steady pace until `isOver`; resolves when every call has been answered. */
async function atRate(perSecond: number, isOver: () => boolean, act: (n: number) => Promise<void>) {
  const begun: Promise<void>[] = [];
  const from = performance.now();
  while (!isOver()) {
    begun.push(act(begun.length));
    await pause(Math.max(0, from + (begun.length * 1000) / perSecond - performance.now()));
  }
  await Promise.all(begun);
}

async function serverConnections(): Promise<number> {
  const [row] = await database.query(
    'select count(*) - 1 as n from information_schema.processlist where db = database()',
  );
  return Number(row?.n);
}

test(
  'restarted under 50 requests/s: only 502 and 503 in the gap, back within 2 s, nothing doubled or leaked',
  options,
  async (t) => {
    await database.query('create table t (id int, index (id))');
    const pool = 3;
    const gateway = await startGateway({ database, settings: { workers: 1, pool } });
    const history = new Map<number, Told>();
    const statuses: { at: number; status: number }[] = [];
    let isOver = false;
    const load = atRate(
      50,
      () => isOver,
      async (id) => {
        const SQL = `insert into t values (${id})`;
        const reply = await gateway.dbPost({ SQL }, { timeoutMs: 10_000 });
        history.set(id, toldBy(reply));
        statuses.push({ at: performance.now(), status: reply.status });
      },
    );
    const served = (count: number) =>
      eventually(
        `${count} served`,
        () => statuses.filter(({ status }) => status === 200).length >= count,
      );
    await served(25);
    await database.halt('SIGKILL');
    const stoppedAt = performance.now();
    await eventually('refusals', () => statuses.filter(({ at }) => at > stoppedAt).length >= 50);
    await database.resume();
    const resumedAt = performance.now();
    await eventually('served again', () =>
      statuses.some(({ at, status }) => at > resumedAt && status === 200),
    );
    const backMs = performance.now() - resumedAt;
    isOver = true;
    await load;
    await fillPool(gateway, pool);
    assert.ok(backMs < 2000, `${backMs} ms`);
    for (const { status } of statuses) assert.ok([200, 502, 503].includes(status), String(status));
    assert.ok(statuses.some(({ status }) => status === 503));
    const idle = () => readMetric(gateway, 'dbhttpd_pool_connections', { state: 'idle' });
    // The control connection comes back by itself, on a delay of its own.
    await eventually('pool, control and probe', async () => {
      return (await serverConnections()) === pool + 2;
    });
    assert.equal(await idle(), pool);
    const rows = await database.query('select id, count(*) as n from t group by id');
    const counted = new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
    assert.deepEqual(contradictions(history, counted), []);
    t.diagnostic(`${JSON.stringify(summary(history))}, back after ${Math.round(backMs)} ms`);
    await gateway.stop();
  },
);

test(
  'frozen, then thawed: everything answered within its deadline, and well again',
  options,
  async () => {
    const gateway = await startGateway({
      database,
      settings: { workers: 1, pool: 3, queue: 20, statement_timeout: '1s' },
    });
    await fillPool(gateway, 3);
    let isOver = false;
    const late: string[] = [];
    const fates = new Map<string, number>();
    database.freeze();
    const load = atRate(
      20,
      () => isOver,
      async () => {
        const from = performance.now();
        const reply = await gateway.dbPost({ SQL: 'insert into t values (-1)' });
        const tookMs = performance.now() - from;
        const fate = reply.status === 200 ? '200' : outcomeOf(reply);
        fates.set(fate, (fates.get(fate) ?? 0) + 1);
        if (tookMs > 2000) late.push(`${fate} after ${tookMs} ms`);
      },
    );
    await pause(12_000);
    assert.equal((await gateway.get('/readyz')).status, 503);
    assert.equal((await gateway.get('/livez')).status, 200);
    database.thaw();
    const thawedAt = performance.now();
    await eventually(
      'well again',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
    const backMs = performance.now() - thawedAt;
    isOver = true;
    await load;
    assert.deepEqual(late, []);
    for (const fate of fates.keys()) {
      assert.match(fate, /^200$|^503 \w+ not_executed$|^504 DEADLINE_RUNNING unknown$/);
    }
    assert.ok(backMs < 5000, `${backMs} ms`);
    await eventually('ready', async () => (await gateway.get('/readyz')).status === 200);
    await eventually('no connection is leaked', async () => (await serverConnections()) <= 5);
    await gateway.stop();
  },
);

test(
  'down at start: the gateway starts, refuses at once, and serves as soon as the database is there',
  options,
  async () => {
    await database.halt();
    const gateway = await startGateway({ database, settings: { workers: 1, pool: 2 } });
    const from = performance.now();
    assert.equal(
      outcomeOf(await gateway.dbPost({ SQL: 'select 1' })),
      '503 DATABASE_UNREACHABLE not_executed',
    );
    assert.ok(performance.now() - from < 1000);
    assert.equal((await gateway.get('/readyz')).status, 503);
    await database.resume();
    const resumedAt = performance.now();
    await eventually(
      'serves',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
    assert.ok(performance.now() - resumedAt < 2000);
    await gateway.stop();
  },
);

test(
  'gone in mid-statement: 502, and the next request is refused or served, never hung',
  options,
  async () => {
    const gateway = await startGateway({ database, settings: { workers: 1, pool: 2 } });
    const asked = gateway.dbPost({ SQL: 'insert into t select sleep(60)' });
    await eventually('it runs', async () => {
      const rows = await database.query(
        "select id from information_schema.processlist where info like 'insert%sleep%'",
      );
      return rows.length === 1;
    });
    await database.halt('SIGKILL');
    assert.equal(outcomeOf(await asked), '502 CONNECTION_LOST unknown');
    await database.resume();
    await eventually(
      'serves',
      async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
    );
    await gateway.stop();
  },
);

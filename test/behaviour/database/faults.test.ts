// The database restarts, freezes, dies or is down at the start: everything is answered, and well again afterwards.
// Waits 10 s: a connection to a database that says nothing is given up then. It needs little of the processor.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, isServerGiven, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import {
  contradictions,
  type Reported,
  reportedBy,
  summary,
} from '../../support/histories/history.ts';
import { readMetric } from '../../support/scrape.ts';

const options = isServerGiven()
  ? { skip: 'DBHTTPD_TEST_MYSQL names a server that these tests may not stop or configure' }
  : {};

/** Two seconds by the contract; four times as much is for a busy machine. */
const soon = { timeoutMs: 8000 };
const pool = 3;
/** Runs longer than any deadline here: these requests are answered while the server is frozen. */
const slowInsert = 'insert into t select sleep(30)';

let database: Database;
let gateway: Gateway;

before(async () => {
  if (isServerGiven()) return;
  database = await startDatabase({ own: true });
  await database.query('create table t (id int, index (id))');
  gateway = await startGateway({ database, settings: { workers: 1, pool } });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const serves = async (by: Gateway) => (await by.dbPost({ SQL: 'select 1' })).status === 200;

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
    await fillPool(gateway, pool);
    const history = new Map<number, Reported>();
    const statuses: { at: number; status: number }[] = [];
    let isOver = false;
    const load = atRate(
      50,
      () => isOver,
      async (id) => {
        const SQL = `insert into t values (${id})`;
        const reply = await gateway.dbPost({ SQL }, { timeoutMs: 10_000 });
        history.set(id, reportedBy(reply));
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
    await eventually(
      'served again',
      () => statuses.some(({ at, status }) => at > resumedAt && status === 200),
      soon,
    );
    const backMs = performance.now() - resumedAt;
    isOver = true;
    await load;
    await fillPool(gateway, pool);
    for (const { status } of statuses) assert.ok([200, 502, 503].includes(status), String(status));
    assert.ok(statuses.some(({ status }) => status === 503));
    const idle = () => readMetric(gateway, 'dbhttpd_pool_connections', { state: 'idle' });
    // The control connection comes back independently, after its own delay.
    await eventually('pool, control and probe', async () => {
      return (await serverConnections()) === pool + 2;
    });
    assert.equal(await idle(), pool);
    const rows = await database.query('select id, count(*) as n from t group by id');
    const counted = new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
    assert.deepEqual(contradictions(history, counted), []);
    t.diagnostic(`${JSON.stringify(summary(history))}, back after ${Math.round(backMs)} ms`);
  },
);

describe('frozen', options, () => {
  /** Time enough to freeze the server while statements run. */
  const statementMs = 4000;
  /** A second, and four on a busy machine. */
  const maxMs = statementMs + 4000;
  let frozen: Gateway;
  before(async () => {
    if (isServerGiven()) return;
    const settings = { workers: 1, pool, queue: 20, statement_timeout: `${statementMs}ms` };
    frozen = await startGateway({ database, settings });
  });
  after(() => frozen?.stop());

  /** Freezes the database and sends inserts at this rate until `isEnough` says so, thaws it, and checks all answers. */
  async function freezeUnder(
    perSecond: number,
    isEnough: (reported: (fate: RegExp) => number, frozenMs: number) => boolean | Promise<boolean>,
  ): Promise<void> {
    const late: string[] = [];
    const fates = new Map<string, number>();
    const reported = (fate: RegExp) => {
      const matching = [...fates].filter(([one]) => fate.test(one));
      return matching.reduce((sum, [, count]) => sum + count, 0);
    };
    let isOver = false;
    await fillPool(frozen, pool);
    try {
      const ask = async (SQL: string) => {
        const from = performance.now();
        const reply = await frozen.dbPost({ SQL });
        const tookMs = performance.now() - from;
        const fate = reply.status === 200 ? '200' : outcomeOf(reply);
        fates.set(fate, (fates.get(fate) ?? 0) + 1);
        if (tookMs > maxMs) late.push(`${fate} after ${tookMs} ms`);
      };
      const processlist = await openProcesslist(database);
      const running = Array.from({ length: pool }, () => ask(slowInsert));
      await processlist.started(slowInsert, pool);
      processlist.close();
      const frozenAt = performance.now();
      database.freeze();
      const insert = () => ask('insert into t values (-1)');
      const load = Promise.all([...running, atRate(perSecond, () => isOver, insert)]);
      const isEnoughNow = () => isEnough(reported, performance.now() - frozenAt);
      await eventually('enough replies are there', isEnoughNow, {
        timeoutMs: 60_000,
        everyMs: 200,
      });
      assert.equal((await frozen.get('/readyz')).status, 503);
      assert.equal((await frozen.get('/livez')).status, 200);
      database.thaw();
      await eventually('well again', () => serves(frozen));
      isOver = true;
      await load;
    } finally {
      isOver = true;
      database.thaw();
    }
    assert.deepEqual(late, []);
    for (const fate of fates.keys()) {
      assert.match(fate, /^200$|^503 \w+ not_executed$|^504 DEADLINE_RUNNING unknown$/);
    }
    await eventually('ready', async () => (await frozen.get('/readyz')).status === 200);
    // Each gateway's pool, control and probe.
    await eventually('no connection is leaked', async () => {
      return (await serverConnections()) <= 2 * (pool + 2);
    });
  }

  test('frozen, then thawed: everything answered within its deadline, and well again', () =>
    // Requests that ran, requests that waited for a connection, and requests after them, which find the database away.
    freezeUnder(
      20,
      (reported) => reported(/^504 DEADLINE_RUNNING/) >= pool && reported(/^503/) >= 40,
    ));

  test('a connection to a frozen server is given up after ten seconds; requests that wait for it are answered by their deadlines', async () => {
    const failed = () => readMetric(frozen, 'dbhttpd_connects_total', { result: 'failed' });
    const failedBefore = await failed();
    let givenUpMs = 0;
    await freezeUnder(5, async (reported, frozenMs) => {
      givenUpMs = frozenMs;
      return (
        (await failed()) > failedBefore && reported(/^503 (DEADLINE_WAITING|WAITED_TOO_LONG)/) > 0
      );
    });
    // The pool was full: every attempt began after the freeze. Four times the constant is for a busy machine.
    assert.ok(givenUpMs >= 10_000 && givenUpMs < 40_000, `${givenUpMs} ms`);
  });
});

test(
  'down at the start: the gateway starts, rejects at once, and serves as soon as the database is up',
  options,
  async () => {
    await database.halt();
    const early = await startGateway({ database, settings: { workers: 1, pool: 2 } });
    try {
      assert.equal(
        outcomeOf(await early.dbPost({ SQL: 'select 1' })),
        '503 DATABASE_UNREACHABLE not_executed',
      );
      assert.equal((await early.get('/readyz')).status, 503);
      await database.resume();
      await eventually('serves', () => serves(early), soon);
    } finally {
      await database.resume();
      await early.stop();
    }
  },
);

test(
  'gone in mid-statement: 502, and the next request is refused or served, never hung',
  options,
  async () => {
    await eventually('it serves', () => serves(gateway));
    const processlist = await openProcesslist(database);
    const asked = gateway.dbPost({ SQL: 'insert into t select sleep(60)' });
    await processlist.started('insert into t select sleep(60)');
    processlist.close();
    await database.halt('SIGKILL');
    try {
      assert.equal(outcomeOf(await asked), '502 CONNECTION_LOST unknown');
    } finally {
      await database.resume();
    }
    await eventually('serves', () => serves(gateway));
  },
);

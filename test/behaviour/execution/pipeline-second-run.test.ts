// A read that ran in the pipeline, was cut short, and finds no place outside: it is never reported as not executed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { enterPipeline, startLoad } from '../../support/pipeline.ts';
import { useDatabase } from '../../support/use-gateway.ts';

/** Two of them are the pipeline's. */
const pool = 4;
/** Each table is a separate shape. On a machine that pauses, a read may miss the pipeline: then the test uses the next table. */
const tables = ['locked_a', 'locked_b', 'locked_c', 'locked_d', 'locked_e', 'locked_f'];
const innocent = 'select id from innocent where id = 1';

const database = useDatabase({
  prepare: async (own) => {
    await createGate(own);
    await own.query('create table innocent (id int primary key)');
    for (const name of tables) {
      await own.query(`create table ${name} (id int primary key); insert into ${name} values (1)`);
    }
  },
});
/** The outcomes of a read that was not in the pipeline, or has found a place outside: there it waits for the lock until its deadline. */
const wasElsewhere = /^(503 \w+ not_executed|504 DEADLINE_RUNNING failed)$/;

/** The reply to a read that ran in the pipeline until the server ended it, because its table is locked, while all other sessions were taken. */
async function replyWithoutPlace(queue: number, request: object): Promise<Reply> {
  const gateway = await startGateway({ database, settings: { workers: 1, pool, queue } });
  try {
    for (const table of tables) {
      const reply = await askWhileLocked(gateway, table, request);
      if (!wasElsewhere.test(outcomeOf(reply))) return reply;
    }
    return assert.fail('no read left the pipeline and found no place');
  } finally {
    await gateway.stop();
  }
}

async function askWhileLocked(gateway: Gateway, table: string, request: object): Promise<Reply> {
  const SQL = `select id from ${table} where id = 1`;
  await enterPipeline(gateway, SQL);
  await enterPipeline(gateway, innocent);
  // Others keep the pipeline in use, because an idle one gives its session back.
  const load = startLoad(
    gateway,
    () => innocent,
    () => {},
    1,
  );
  const locker = await database.connect();
  const gate = await closeGate(database);
  const processlist = await openProcesslist(database);
  try {
    await locker.query(`lock tables ${table} write`);
    const busy = Array.from({ length: pool - 2 }, () =>
      gateway.dbPost({ SQL: `select ${gate.zero}` }),
    );
    await processlist.started('from gate', busy.length);
    const reply = await gateway.dbPost({ SQL, ...request });
    await gate.open();
    for (const { status } of await Promise.all(busy)) assert.equal(status, 200);
    return reply;
  } finally {
    await gate.open();
    processlist.close();
    locker.destroy();
    await load.stop();
  }
}

const times = (timing: unknown) =>
  [...String(timing).matchAll(/dur=([\d.]+)/g)].map(([, ms]) => Number(ms));

test('the queue is full: 502, nothing was changed, and the time in the database is reported', async () => {
  const reply = await replyWithoutPlace(0, {});
  assert.equal(outcomeOf(reply), '502 QUEUE_FULL failed');
  assert.doesNotMatch(reply.text, /executed/);
  assert.equal(reply.headers['retry-after'], undefined);
  const [, databaseMs = 0] = times(reply.headers['server-timing']);
  assert.ok(databaseMs > 90, `${databaseMs} ms`);
});

test('it waits too long for its second run: 502, nothing was changed', async () => {
  const reply = await replyWithoutPlace(10, { TIMEOUT: 2_000 });
  assert.equal(outcomeOf(reply), '502 WAITED_TOO_LONG failed');
  const [queueMs = 0, databaseMs = 0] = times(reply.headers['server-timing']);
  assert.ok(databaseMs > 90 && queueMs > 100, `${queueMs} and ${databaseMs} ms`);
});

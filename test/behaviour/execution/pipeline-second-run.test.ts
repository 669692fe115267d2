// A read that ran in the pipeline, was cut short, and finds no place outside: it is never said to be not executed.
// Must not know how the gateway runs it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { outcomeOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { enterPipeline, pipelinedStatements, startLoad } from '../../support/pipeline.ts';

/** Two of them are the pipeline's. */
const pool = 4;

const innocent = 'select id from innocent where id = 1';

let database: Database;
let processlist: Processlist;

before(async () => {
  database = await startDatabase();
  processlist = await openProcesslist(database);
});
after(async () => {
  processlist?.close();
  await database.stop();
});

/** Brings reads of the table into the pipeline, locks it, and takes all other sessions. */
async function whileNoPlaceIsLeft(
  table: string,
  queue: number,
  act: (gateway: Gateway, read: string) => Promise<void>,
): Promise<void> {
  await database.query(
    `create table ${table} (id int primary key); insert into ${table} values (1);
     create table if not exists innocent (id int primary key)`,
  );
  const gateway = await startGateway({ database, settings: { workers: 1, pool, queue } });
  const locker = await database.connect();
  try {
    const read = `select id from ${table} where id = 1`;
    await enterPipeline(gateway, read);
    // Others keep the pipeline in use until then: one that lies idle is given back.
    await enterPipeline(gateway, innocent);
    const load = startLoad(
      gateway,
      () => innocent,
      () => {},
    );
    await locker.query(`lock tables ${table} write`);
    const busy = Array.from({ length: pool - 2 }, (_, n) =>
      gateway.dbPost({ SQL: `select sleep(60) /* ${table} ${n} */`, TIMEOUT: 10_000 }),
    );
    await processlist.started(`/* ${table}`, busy.length);
    await load.stop();
    await act(gateway, read);
    await locker.query('unlock tables');
    for (const { status } of await Promise.all(busy)) assert.equal(status, 504);
  } finally {
    locker.destroy();
    await gateway.stop();
  }
}

const times = (timing: unknown) =>
  [...String(timing).matchAll(/dur=([\d.]+)/g)].map(([, ms]) => Number(ms));

test('the queue is full: 502, nothing was changed, and the time in the database is told', () =>
  whileNoPlaceIsLeft('locked_full', 0, async (gateway, read) => {
    const inPipeline = await pipelinedStatements(gateway);
    const reply = await gateway.dbPost({ SQL: read });
    assert.equal(await pipelinedStatements(gateway), inPipeline + 1, 'it was in the pipeline');
    assert.equal(outcomeOf(reply), '502 QUEUE_FULL failed');
    assert.doesNotMatch(reply.text, /executed/);
    assert.equal(reply.headers['retry-after'], undefined);
    const [, databaseMs = 0] = times(reply.headers['server-timing']);
    assert.ok(databaseMs > 90, `${databaseMs} ms`);
  }));

test('the deadline passes while it waits for its second run: 504, nothing was changed', () =>
  whileNoPlaceIsLeft('locked_late', 10, async (gateway, read) => {
    const inPipeline = await pipelinedStatements(gateway);
    const reply = await gateway.dbPost({ SQL: read, TIMEOUT: 2_000 });
    assert.equal(await pipelinedStatements(gateway), inPipeline + 1, 'it was in the pipeline');
    assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
    const [queueMs = 0, databaseMs = 0] = times(reply.headers['server-timing']);
    assert.ok(databaseMs > 90 && queueMs > 100, `${queueMs} and ${databaseMs} ms`);
  }));

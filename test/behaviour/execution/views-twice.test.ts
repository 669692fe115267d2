// A view whose function writes: executed once for each request, by any of the gateway's ways to run reads.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { cellOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { enterPipeline, pipelinedStatements } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';

const manyRows = 3_000;
/** Fourteen are enough on a machine that is quiet. */
const quickReads = 30;

/** Each is a separate shape. If the machine pauses, a read may miss the pipeline: then the test uses the next one. */
const swapped = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => `swapped_${letter}`);

let database: Database;
let gateway: Gateway;
let processlist: Processlist;

before(async () => {
  database = await startDatabase();
  for (const sql of [
    'create table item (id int primary key, v varchar(60))',
    `insert into item with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
       select n, repeat('x', 50) from c`,
    `insert into item select id + 900, v from item`,
    `insert into item select id + 1800, v from item where id <= ${manyRows - 1800}`,
    // Writes of an interrupted statement remain in this table.
    'create table log (id int) engine = MyISAM',
    `create function log_read(i int) returns int begin insert into log values (i); return i; end`,
    `create function log_slowly(i int) returns int
       begin insert into log values (i); if i > 100 then return i + sleep(0.2); end if; return i; end`,
    'create view logged as select id, v, log_read(id) as seen from item',
    'create view logged_slowly as select id, log_slowly(id) as seen from item',
    'create view harmless as select id, upper(v) as v from item',
    // The gateway knows them from its start.
    ...swapped.map(
      (name) => `create table ${name} (id int primary key); insert into ${name} values (1), (2)`,
    ),
  ]) {
    await database.query(sql);
  }
  processlist = await openProcesslist(database);
  gateway = await startGateway({ database, settings: { workers: 1, pool: 6 } });
});
after(async () => {
  processlist?.close();
  await gateway?.stop();
  await database.stop();
});
beforeEach(() => database.query('delete from log'));

const logged = async () => Number((await database.query('select count(*) as n from log'))[0]?.n);
const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');
const ask = (SQL: string, more: object = {}) => gateway.dbPost({ SQL, ...more });

test('quick reads and a large one: one entry for each row that was read', async () => {
  for (let id = 1; id <= quickReads; id += 1) {
    assert.equal(
      rowsOf(await ask(`select * from logged where id <= ${id} and id >= ${id}`)).length,
      1,
    );
  }
  const large = await ask(`select * from logged where id <= ${manyRows} and id >= 1`);
  assert.equal(rowsOf(large).length, manyRows);
  assert.equal(await logged(), quickReads + manyRows);
});

test('quick reads and a slow one: one entry for each row that was read', async () => {
  for (let id = 1; id <= quickReads; id += 1)
    await ask(`select * from logged_slowly where id = ${id}`);
  assert.equal(rowsOf(await ask('select * from logged_slowly where id = 200')).length, 1);
  assert.equal(await logged(), quickReads + 1);
});

test('a read of it that its deadline ends is not said to have changed nothing', async () => {
  const reply = await ask('select sum(seen) from logged_slowly where id between 101 and 200', {
    TIMEOUT: 2_000,
  });
  assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING unknown');
});

test('a read of tables alone, or of a view that calls built-ins alone, is', async () => {
  for (const from of ['item', 'harmless']) {
    const reply = await ask(`select sleep(0.01) from ${from}`, { TIMEOUT: 500 });
    assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING failed');
  }
});

test('reads of tables and of harmless views are pipelined as ever', async () => {
  await enterPipeline(gateway, 'select v from item where id = 7');
  await enterPipeline(gateway, 'select v from harmless where id = 7');
  assert.equal(cellOf(await ask('select v from harmless where id = 7')), 'X'.repeat(50));
});

test('another client makes a table a view that writes: refused in the pipeline, it runs once', async () => {
  for (const table of swapped) {
    const read = `select id from ${table} where id =`;
    await enterPipeline(gateway, `${read} 1`);
    await database.query(`rename table ${table} to ${table}_rows;
      create view ${table} as select log_read(id) as id from ${table}_rows`);
    // An idle pipeline gives its session back.
    await enterPipeline(gateway, 'select v from item where id = 7');
    // Any read that is slow for once is run again: only those from here on count.
    const rerunsBefore = await reruns();
    const before_ = await pipelinedStatements(gateway);
    assert.equal(cellOf(await ask(`${read} 2`)), 2);
    const wasInPipeline = (await pipelinedStatements(gateway)) === before_ + 1;
    assert.equal((await reruns()) - rerunsBefore, wasInPipeline ? 1 : 0);
    const entries = await logged();
    await database.query('delete from log');
    await ask(`${read} 2`);
    assert.equal(await logged(), entries, 'the same as without the pipeline');
    const inPipeline = await pipelinedStatements(gateway);
    for (let n = 0; n < quickReads; n += 1) await ask(`${read} 1`);
    assert.equal(await pipelinedStatements(gateway), inPipeline, 'it is not tried again');
    if (wasInPipeline) return;
    await database.query('delete from log');
  }
  assert.fail('no read was in the pipeline');
});

test('a table becomes a view through one worker: the others know it soon, and it is read once each time', async () => {
  await database.query(
    'create table moved (id int primary key); insert into moved values (1), (2)',
  );
  const both = await startGateway({ database, settings: { workers: 2, pool: 6 } });
  try {
    const SQL = 'select id from moved where id = 1';
    await enterPipeline(both, SQL);
    for (const change of [
      'rename table moved to moved_rows',
      'create view moved as select log_read(id) as id from moved_rows',
    ]) {
      assert.equal((await both.dbPost({ SQL: change })).status, 200);
    }
    // Long before a minute has passed.
    await eventually('no worker pipelines it', async () => {
      const inPipeline = await pipelinedStatements(both);
      const replies = Array.from({ length: 16 }, () => both.dbPost({ SQL }));
      for (const reply of await Promise.all(replies)) assert.equal(cellOf(reply), 1);
      return (await pipelinedStatements(both)) === inPipeline;
    });
    await database.query('delete from log');
    const once = rowsOf(await both.dbPost({ SQL })).length;
    assert.ok(once === 1 && (await logged()) > 0);
  } finally {
    await both.stop();
  }
});

test('its client leaves: the statement runs to its end', async () => {
  const sql = 'select sum(seen) from logged_slowly where id between 101 and 125';
  const client = await openRaw(gateway.port);
  const query = encodeURIComponent(JSON.stringify({ SQL: sql }));
  client.send(`GET /db?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await processlist.started(sql);
  client.reset();
  await eventually('all are there', async () => (await logged()) === 25);
  await processlist.ended(sql);
});

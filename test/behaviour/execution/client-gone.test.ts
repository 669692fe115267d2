// A client that goes away: its read is killed, its write runs to its end and is logged.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

/** A second by the contract; four times as much is for a busy machine. */
const maxMs = 4000;

const { gateway, database } = useGateway(
  { workers: 1, pool: 1 },
  {
    prepare: async (own) => {
      await createGate(own);
      await own.query(`
        create table t (id int primary key, v int); insert into t values (1, 0);
        create table wide (v text) as select repeat('x', 1000) as v;
        insert into wide with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select repeat('x', 1000) from c`);
    },
  },
);

let processlist: Processlist;
beforeEach(async () => {
  processlist = await openProcesslist(database);
});
afterEach(() => processlist?.close());

/** Sends a request and gives the connection to the caller. */
async function send(SQL: string) {
  const connection = await openRaw(gateway.port);
  const body = JSON.stringify({ SQL });
  connection.send(
    `POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return connection;
}

for (const leave of ['close', 'reset'] as const) {
  const how = { close: 'FIN', reset: 'RST' }[leave];

  test(`a read is gone within a second of its client's ${how}, and the connection serves the next`, async () => {
    for (const sql of ['select sleep(60)', 'select sleep(60), v from wide']) {
      const connects = await readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' });
      const connection = await send(sql);
      await processlist.started(sql);
      connection[leave]();
      const tookMs = await processlist.ended(sql);
      assert.ok(tookMs < maxMs, `${tookMs} ms`);
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
      const now = await readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' });
      assert.equal(now, Math.max(connects, 1));
    }
  });

  test(`a stream is killed within a second of its client's ${how}`, async () => {
    // 400 MB that the client takes a part of.
    const sql = 'select a.v from wide a, wide b';
    const connection = await send(sql);
    await connection.anything();
    await processlist.started(sql);
    connection[leave]();
    const tookMs = await processlist.ended(sql);
    assert.ok(tookMs < maxMs, `${tookMs} ms`);
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  });

  test(`a write runs to its end after its client's ${how}, and is logged without its text`, async () => {
    const valueBefore = Number((await database.query('select v from t where id = 1'))[0]?.v);
    const reported = () => gateway.log().match(/a write went on.*outcome/g)?.length ?? 0;
    const linesBefore = reported();
    const gate = await closeGate(database);
    const sql = `update t set v = v + 1 + ${gate.zero} where id = 1`;
    const clients = () => readMetric(gateway, 'dbhttpd_client_connections');
    const connection = await send(sql);
    await processlist.started(sql);
    const clientsBefore = await clients();
    connection[leave]();
    await eventually('it is gone', async () => (await clients()) < clientsBefore);
    await gate.open();
    await eventually('the log tells it', () => reported() === linesBefore + 1);
    const [row] = await database.query('select v from t where id = 1');
    assert.equal(Number(row?.v), valueBefore + 1);
    assert.doesNotMatch(gateway.log(), /from gate/);
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  });
}

test('a write without its client still has its deadline', async () => {
  const body = JSON.stringify({ SQL: 'update t set v = 99 + sleep(1000)', TIMEOUT: 2_500 });
  const connection = await openRaw(gateway.port);
  connection.send(
    `POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await processlist.started('99 + sleep(1000)');
  connection.close();
  const tookMs = await processlist.ended('99 + sleep(1000)');
  assert.ok(tookMs < 2_500 + maxMs, `${tookMs} ms`);
});

test('a waiting request whose client leaves is never run', async () => {
  const gate = await closeGate(database);
  const busy = gateway.dbPost({ SQL: `select ${gate.zero}` });
  await processlist.started('from gate');
  const waiting = [await send('select 4711'), await send('insert into t values (4711, 0)')];
  await eventually(
    'both wait',
    async () => (await readMetric(gateway, 'dbhttpd_queue_length')) === 2,
  );
  for (const connection of waiting) connection.close();
  await eventually(
    'none waits',
    async () => (await readMetric(gateway, 'dbhttpd_queue_length')) === 0,
  );
  await gate.open();
  await busy;
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select count(*) from t where id = 4711' })), 0);
  assert.doesNotMatch(gateway.log(), /a write went on.*not_executed/);
});

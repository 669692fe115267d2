// A read of a quick shape whose result is large this once: it streams as any other, others do not wait, memory stays.
// Must not know how the pipeline notices.
// Runs alone: others are served within 600 ms.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { enterPipeline, startLoad } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';

const cell = 'x'.repeat(1000);
/** Digits are no part of a shape: this many rows, squared, of a thousand characters. */
const large = (rows: number) =>
  `select wide.v from wide, many a, many b where a.n <= ${rows} and b.n <= ${rows}`;

let database: Database;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table wide (v text); insert into wide values ('${cell}');
    create table innocent (id int primary key, v int); insert into innocent values (1, 3);
    create table many (n int primary key);
    insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
      select n from c`);
});
after(() => database.stop());

async function withPipeline(use: (gateway: Gateway) => Promise<void>): Promise<void> {
  gateway = await startGateway({ database, settings: { workers: 1, pool: 16 } });
  try {
    await enterPipeline(gateway, large(1));
    await enterPipeline(gateway, 'select v from innocent where id = 1');
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

function residentMb(): number {
  const [worker = 0] = gateway.workers();
  const status = readFileSync(`/proc/${worker}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

test('it is whole and right, and its shape leaves the pipeline', () =>
  withPipeline(async () => {
    const reruns = await readMetric(gateway, 'dbhttpd_pipeline_reruns_total');
    for (const rows of [9, 60]) {
      const reply = await gateway.dbPost({ SQL: large(rows) });
      assert.equal(rowsOf(reply).length, rows * rows);
      assert.ok(rowsOf(reply).every(([v]) => v === cell));
    }
    const rerun = (await readMetric(gateway, 'dbhttpd_pipeline_reruns_total')) - reruns;
    assert.equal(rerun, 1, 'the second one found its shape outside');
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select v from innocent where id = 1' })), 3);
  }));

test('eight readers that do not read 800 MB each: others are served, memory does not grow by it', () =>
  withPipeline(async () => {
    const load = startLoad(
      gateway,
      () => 'select v from innocent where id = 1',
      (reply) => assert.equal(cellOf(reply), 3),
    );
    await eventually('the load runs', () => load.seen().replies > 50);
    const before_ = residentMb();
    load.forget();
    const body = JSON.stringify({ SQL: large(900) });
    const readers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const reader = await openRaw(gateway.port);
        reader.socket.pause();
        reader.send(
          `POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
        return reader;
      }),
    );
    await eventually(
      'all eight run',
      async () => (await readMetric(gateway, 'dbhttpd_pool_connections', { state: 'busy' })) >= 8,
    );
    const { replies } = load.seen();
    await eventually('others are served', () => load.seen().replies > replies + 200);
    const grownMb = residentMb() - before_;
    for (const reader of readers) reader.reset();
    const { longestMs } = await load.stop();
    assert.ok(longestMs < 600, `${longestMs} ms`);
    assert.ok(grownMb < 64, `${grownMb} MB`);
  }));

// A read of a quick shape whose result is large this once: it streams like any other read, others do not wait, and memory does not grow.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import { enterPipeline, startLoad } from '../../support/pipeline.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const cell = 'x'.repeat(1000);
/** Digits are no part of a shape, and a name is: this many rows, squared, of a thousand characters. */
const large = (name: string, rows: number) =>
  `select wide.v as ${name} from wide, many a, many b where a.n <= ${rows} and b.n <= ${rows}`;

const innocent = 'select v from innocent where id = 1';

const { gateway } = useGateway(
  { workers: 1, pool: 16 },
  {
    prepare: async (own) => {
      await own.query(`
        create table wide (v text); insert into wide values ('${cell}');
        create table innocent (id int primary key, v int); insert into innocent values (1, 3);
        create table many (n int primary key);
        insert into many with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
          select n from c`);
    },
  },
);

async function beginWith(name: string): Promise<void> {
  await enterPipeline(gateway, large(name, 1));
  await enterPipeline(gateway, innocent);
}

const reruns = () => readMetric(gateway, 'dbhttpd_pipeline_reruns_total');

function residentMb(): number {
  const [worker = 0] = gateway.workers();
  const status = readFileSync(`/proc/${worker}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

test('it is whole and right, and its shape leaves the pipeline', async () => {
  // If the machine pauses, a read may miss the pipeline: then the test uses the next shape.
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
    await beginWith(name);
    const rerunsBefore = await reruns();
    const rerunsAfter: number[] = [];
    for (const rows of [9, 60]) {
      const reply = await gateway.dbPost({ SQL: large(name, rows) });
      assert.equal(rowsOf(reply).length, rows * rows);
      assert.ok(rowsOf(reply).every(([v]) => v === cell));
      rerunsAfter.push(await reruns());
    }
    assert.equal(cellOf(await gateway.dbPost({ SQL: innocent })), 3);
    const [first, second] = rerunsAfter;
    if (first === rerunsBefore) continue;
    assert.equal(second, first, 'the second one found its shape outside');
    return;
  }
  assert.fail('no read was in the pipeline');
});

test('eight readers that do not read 800 MB each: others are served, memory does not grow by it', async () => {
  await beginWith('held');
  const load = startLoad(
    gateway,
    () => innocent,
    (reply) => assert.equal(cellOf(reply), 3),
  );
  await eventually('the load runs', () => load.seen().replies > 50);
  const before_ = residentMb();
  const body = JSON.stringify({ SQL: large('held', 900) });
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
  try {
    await eventually(
      'all eight run',
      async () => (await readMetric(gateway, 'dbhttpd_pool_connections', { state: 'busy' })) >= 8,
    );
    const { replies } = load.seen();
    await eventually('others are served', () => load.seen().replies > replies + 200);
    const grownMb = residentMb() - before_;
    assert.ok(grownMb < 64, `${grownMb} MB`);
  } finally {
    for (const reader of readers) reader.reset();
    await load.stop();
  }
});

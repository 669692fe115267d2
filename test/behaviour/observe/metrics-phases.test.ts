// /metrics has for each request how long it waited, how much of that for a connection to be opened, and when its first row came.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { type Samples, sumOf } from '../../support/exposition.ts';
import { readMetric, scrape } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 1 },
  { prepare: createGate },
);

/** The difference of a histogram between two scrapes, in seconds. */
function added(name: string, earlier: Samples, later: Samples, labels = {}) {
  const grown = (suffix: string) =>
    sumOf(later, name + suffix, labels) - sumOf(earlier, name + suffix, labels);
  return { count: grown('_count'), sum: grown('_sum') };
}

/** The same of all phases, the whole among them. */
function phasesBetween(earlier: Samples, later: Samples) {
  const phase = (name: string) =>
    added('dbhttpd_phase_duration_seconds', earlier, later, { phase: name });
  return {
    waiting: phase('waiting'),
    connecting: phase('connecting'),
    firstRow: phase('first_row'),
    whole: added('dbhttpd_request_duration_seconds', earlier, later),
  };
}

function queueMsOf(headers: Readonly<Record<string, unknown>>): number {
  return Number(/queue;dur=([\d.]+)/.exec(String(headers['server-timing']))?.[1]);
}

// The first test, because later requests count.
test('each phase has buckets from 0.5 ms to 60 s, which are 0 before the first request', async () => {
  const metrics = await scrape(gateway);
  for (const phase of ['waiting', 'connecting', 'first_row']) {
    const labels = `section="world",slot="0"`;
    const bucket = (le: string) =>
      [...metrics].find(
        ([name]) =>
          name.startsWith(`dbhttpd_phase_duration_seconds_bucket{${labels}`) &&
          name.includes(`phase="${phase}"`) &&
          name.includes(`le="${le}"`),
      )?.[1];
    assert.deepEqual(['0.0005', '60', '+Inf'].map(bucket), [0, 0, 0], phase);
  }
});

test('a request that waits while its connection is opened was connecting, and not waiting for its turn', async () => {
  assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
  const rule = proxy.on(/CURRENT_ROLE/, { kind: 'delay', ms: 400 });
  const connects = await readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' });
  const earlier = await scrape(gateway);
  proxy.cutAll();
  assert.equal((await gateway.db({ SQL: 'select sleep(0)' })).status, 200);
  rule.remove();
  const later = await scrape(gateway);
  const { waiting, connecting, whole } = phasesBetween(earlier, later);
  assert.ok((await readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' })) > connects);
  assert.equal(connecting.count, 1);
  assert.ok(connecting.sum >= 0.39, `${connecting.sum} s`);
  assert.ok(connecting.sum + waiting.sum <= whole.sum, `${waiting.sum} s more`);
  const queued =
    sumOf(later, 'dbhttpd_queue_seconds_total') - sumOf(earlier, 'dbhttpd_queue_seconds_total');
  assert.ok(Math.abs(queued - waiting.sum - connecting.sum) < 1e-6, 'together they are the wait');
});

test('a request that waits for a connection that others use was waiting, and not connecting', async () => {
  assert.equal((await gateway.db({ SQL: 'select sleep(0)' })).status, 200);
  const gate = await closeGate(database);
  const earlier = await scrape(gateway);
  const first = gateway.db({ SQL: `select ${gate.zero}` });
  const second = gateway.db({ SQL: `select 2 + ${gate.zero}` });
  try {
    await eventually('one of them waits', async () => {
      return (await readMetric(gateway, 'dbhttpd_queue_length')) === 1;
    });
  } finally {
    await gate.open();
  }
  const reported = (await Promise.all([first, second])).map(({ headers }) => queueMsOf(headers));
  const { waiting, connecting, firstRow } = phasesBetween(earlier, await scrape(gateway));
  assert.ok(Math.max(...reported) > 0);
  const reportedSum = reported.reduce((sum, ms) => sum + ms, 0) / 1000;
  assert.ok(
    Math.abs(waiting.sum - reportedSum) < 0.005,
    `${waiting.sum} s, and reported ${reportedSum} s`,
  );
  assert.deepEqual([waiting.count, connecting.count, firstRow.count], [2, 0, 2]);
});

test('the first row of a stream comes before its end, and both are measured', async () => {
  const earlier = await scrape(gateway);
  // More than the server's buffer, so each row leaves at once.
  const rows = '(select 1 as n union all select 2 union all select 3) three';
  const sql = `select repeat('x', 70000) as text, sleep(0.2 + 0 * n) as slept from ${rows}`;
  assert.equal((await gateway.db({ SQL: sql })).status, 200);
  const { firstRow, whole } = phasesBetween(earlier, await scrape(gateway));
  assert.deepEqual([firstRow.count, whole.count], [1, 1]);
  assert.ok(firstRow.sum >= 0.19, `${firstRow.sum} s to the first row`);
  assert.ok(whole.sum - firstRow.sum >= 0.1, `${firstRow.sum} s of ${whole.sum} s`);
});

test('a request that was never executed has no phases', async () => {
  assert.equal((await gateway.db({ SQL: 'select sleep(0)' })).status, 200);
  const earlier = await scrape(gateway);
  proxy.refuse(true);
  proxy.cutAll();
  try {
    assert.equal((await gateway.dbPost({ SQL: 'select 1', TIMEOUT: 300 })).status, 503);
    const { waiting, connecting, firstRow } = phasesBetween(earlier, await scrape(gateway));
    assert.deepEqual([waiting.count, connecting.count, firstRow.count], [0, 0, 0]);
  } finally {
    proxy.refuse(false);
    await eventually(
      'the database is reached again',
      async () => (await gateway.db({ SQL: 'select 1' })).status === 200,
    );
  }
});

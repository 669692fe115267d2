// Counters are the sum over every worker there ever was; gauges are those of the living.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namedSamples, type Snapshot } from '../../../../src/shared/observe/metrics.ts';
import { createTotals } from '../../../../src/supervisor/observe/totals.ts';

function snapshot(requests: number, inFlight: number, counts: readonly number[] = []): Snapshot {
  const labels = { endpoint: 'db', status: '2xx' };
  return {
    samples: [
      { metric: 'dbhttpd_requests_total', labels, value: requests },
      { metric: 'dbhttpd_requests_in_flight', labels: {}, value: inFlight },
    ],
    histograms: [
      { metric: 'dbhttpd_request_duration_seconds', labels: {}, counts, sum: counts.length },
    ],
  };
}

const state = {
  slots: [
    {
      slot: 0,
      pid: 7,
      state: 'serving' as const,
      restarts: 1,
      runsOtherCode: false,
      requestsLost: 0,
    },
  ],
  silent: 0,
  logLinesLost: 0,
  certificates: [],
  expiringClients: [],
  renewedKeys: [],
  fileFaults: [],
  primariesUnsaved: 0,
  named: {},
  startedAt: 1,
  own: {
    cpuSeconds: 2,
    residentBytes: 3,
    heapUsedBytes: 4,
    lag: { counts: [5, ...Array<number>(13).fill(0)], sum: 0.001 },
  },
};

async function lines(
  totals: ReturnType<typeof createTotals>,
  changed = {},
): Promise<readonly string[]> {
  return (await totals.render({ ...state, ...changed })).split('\n');
}

const requests = 'dbhttpd_requests_total{section="world",slot="0",endpoint="db",status="2xx"}';

test('a counter never goes backwards when a worker dies, and goes on with its successor', async () => {
  const totals = createTotals('world');
  totals.update(0, snapshot(10, 3));
  assert.ok((await lines(totals)).includes(`${requests} 10`));
  totals.retire(0);
  const between = await lines(totals);
  assert.ok(between.includes(`${requests} 10`));
  assert.ok(!between.some((line) => line.startsWith('dbhttpd_requests_in_flight{')));
  totals.update(0, snapshot(2, 1));
  assert.ok((await lines(totals)).includes(`${requests} 12`));
  totals.retire(0);
  totals.retire(0);
  assert.ok((await lines(totals)).includes(`${requests} 12`));
});

test('a histogram is cumulative, summed over the dead, and counts its last bucket', async () => {
  const totals = createTotals('world');
  const counts = [1, ...Array<number>(15).fill(0), 4];
  totals.update(0, snapshot(0, 0, counts));
  totals.retire(0);
  totals.update(0, snapshot(0, 0, counts));
  const text = await lines(totals);
  const name = 'dbhttpd_request_duration_seconds';
  assert.ok(text.includes(`# TYPE ${name} histogram`));
  assert.ok(text.includes(`${name}_bucket{section="world",slot="0",le="0.0005"} 2`));
  assert.ok(text.includes(`${name}_bucket{section="world",slot="0",le="60"} 2`));
  assert.ok(text.includes(`${name}_bucket{section="world",slot="0",le="+Inf"} 10`));
  assert.ok(text.includes(`${name}_count{section="world",slot="0"} 10`));
  assert.ok(text.includes(`${name}_sum{section="world",slot="0"} 34`));
});

test('the supervisor reports which slots are up, restarted and silent', async () => {
  const text = await lines(createTotals('world'), { silent: 1 });
  assert.ok(text.includes('dbhttpd_worker_up{section="world",slot="0"} 1'));
  assert.ok(text.includes('dbhttpd_worker_restarts_total{section="world",slot="0"} 1'));
  assert.ok(text.includes('dbhttpd_workers_silent{section="world"} 1'));
});

test("the supervisor's own figures are apart from the workers', which a sum is made of", async () => {
  const totals = createTotals('world');
  totals.update(0, snapshot(1, 1));
  const text = await lines(totals);
  assert.ok(text.includes('dbhttpd_supervisor_cpu_seconds_total{section="world"} 2'));
  assert.ok(text.includes('dbhttpd_supervisor_resident_memory_bytes{section="world"} 3'));
  assert.ok(text.includes('dbhttpd_supervisor_heap_used_bytes{section="world"} 4'));
  const lag = 'dbhttpd_supervisor_event_loop_lag_seconds';
  assert.ok(text.includes(`${lag}_bucket{section="world",le="10"} 5`));
  assert.ok(text.includes(`${lag}_count{section="world"} 5`));
  assert.ok(!text.some((line) => /^process_(cpu|resident)/.test(line)));
});

test('counts that no scrape has reported are reported once, at the end', async () => {
  const totals = createTotals('world');
  totals.update(0, snapshot(10, 0));
  assert.equal(totals.unseen().requests, 10);
  await lines(totals);
  assert.equal(totals.unseen().requests, 0);
  totals.retire(0);
  totals.update(0, snapshot(3, 0));
  assert.equal(totals.unseen().requests, 3);
});

test('every named statement in force stands at 0 before its first call, and a removed one is not there', async () => {
  const totals = createTotals('world');
  const called = (name: string): Snapshot => ({
    samples: namedSamples('world', name, { ok: 2, failed: 1, seconds: 0.5 }),
    histograms: [],
  });
  const shown = async (...names: readonly string[]) => {
    const named = { world: names.map((name) => ({ name })) };
    const text = await totals.render({ ...state, named });
    return text
      .split('\n')
      .filter((line) => line.startsWith('dbhttpd_named_'))
      .map((line) => line.replaceAll(/dbhttpd_|_total|section="world",slot="0",/g, ''));
  };
  totals.update(0, called('one'));
  assert.deepEqual(await shown('one', 'two'), [
    'named_calls{name="one",result="ok"} 2',
    'named_calls{name="one",result="failed"} 1',
    'named_calls{name="two",result="ok"} 0',
    'named_calls{name="two",result="failed"} 0',
    'named_seconds{name="one"} 0.5',
    'named_seconds{name="two"} 0',
  ]);
  totals.retire(0);
  assert.deepEqual(await shown('two'), [
    'named_calls{name="two",result="ok"} 0',
    'named_calls{name="two",result="failed"} 0',
    'named_seconds{name="two"} 0',
  ]);
});

test('the counts of ended workers for a client end when a living worker has the client no more', async () => {
  const totals = createTotals('world');
  const of = (clients: readonly string[], value: number): Snapshot => ({
    samples: [
      { metric: 'dbhttpd_requests_in_flight', labels: {}, value: 0 },
      ...clients.map((client) => ({
        metric: 'dbhttpd_client_reply_bytes_total' as const,
        labels: { client },
        value,
      })),
    ],
    histograms: [],
  });
  const shown = async () =>
    (await totals.render(state))
      .split('\n')
      .filter((line) => line.startsWith('dbhttpd_client_reply_bytes_total'));
  const line = (client: string, value: number) =>
    `dbhttpd_client_reply_bytes_total{section="world",slot="0",client="${client}"} ${value}`;
  totals.update(0, of(['web', 'leaver'], 5));
  totals.retire(0);
  assert.deepEqual(await shown(), [line('web', 5), line('leaver', 5)]);
  totals.update(0, of(['web', 'leaver'], 1));
  assert.deepEqual(await shown(), [line('web', 6), line('leaver', 6)]);
  totals.update(0, of(['web'], 2));
  assert.deepEqual(await shown(), [line('web', 7)]);
  totals.update(0, of(['web', 'leaver'], 0));
  assert.deepEqual(await shown(), [line('web', 5), line('leaver', 0)]);
});

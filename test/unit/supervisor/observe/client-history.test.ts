// The list of clients: their share of the last minute, their last ten minutes, and bounded in length.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sample, WorkerMetric } from '../../../../src/shared/observe/metrics.ts';
import { ClientHistory } from '../../../../src/supervisor/observe/client-history.ts';
import type { Reported } from '../../../../src/supervisor/observe/stats.ts';

type Numbers = { readonly held?: number; readonly busy?: number; readonly waiting?: number };

/** Samples of clients by their names. */
function samplesOf(clients: Readonly<Record<string, Numbers>>): readonly Sample[] {
  return Object.entries(clients).flatMap(([client, { held = 0, busy = 0, waiting = 0 }]) => {
    const sample = (metric: WorkerMetric, value: number, labels = {}) => ({
      metric,
      labels: { client, ...labels },
      value,
    });
    return [
      sample('dbhttpd_client_held_seconds_total', held),
      sample('dbhttpd_client_refused_total', busy, { code: 'CLIENT_BUSY' }),
      sample('dbhttpd_client_refused_total', 0, { code: 'FORBIDDEN' }),
      sample('dbhttpd_client_requests_waiting', waiting),
    ];
  });
}

const reported = (
  present: Readonly<Record<string, Numbers>>,
  past: Readonly<Record<string, Numbers>> = {},
): Reported => ({
  past: [{ samples: samplesOf(past), histograms: [] }],
  present: new Map([[0, { samples: samplesOf(present), histograms: [] }]]),
});
const ten = 10_000;

test('the share is that of the last minute, and the loudest client comes first', () => {
  const history = new ClientHistory();
  history.beginPoint(reported({ early: { held: 0 }, late: { held: 0 } }), 0);
  // Long ago `early` was the only one.
  for (let n = 1; n <= 10; n += 1)
    history.beginPoint(reported({ early: { held: 1000 }, late: {} }), n * ten);
  const now = reported({ early: { held: 1010 }, late: { held: 30 }, silent: {} });
  const { clients, omitted } = history.list(now, 11 * ten);
  assert.deepEqual(
    clients.map(({ client, share }) => [client, share]),
    [
      ['late', 0.75],
      ['early', 0.25],
      ['silent', 0],
    ],
  );
  assert.equal(omitted, 0);
});

test('a point has the connections that were held on average, and the refused requests; the last one has not ended', () => {
  const history = new ClientHistory();
  history.beginPoint(reported({ web: {} }), 0);
  history.beginPoint(reported({ web: { held: 20, busy: 3 } }), ten);
  const { clients, history: points } = history.list(
    reported({ web: { held: 25, busy: 4 } }),
    15_000,
  );
  assert.deepEqual(points, { interval_seconds: 10, at: [0, 10] });
  assert.deepEqual(clients[0]?.history, { connections: [2, 1], refused: [3, 1] });
  assert.equal(clients[0]?.refused_recently, 4);
  assert.deepEqual(clients[0]?.refused_by, { CLIENT_BUSY: 4 });
});

test('ended workers count, and a client that begins again at 0 makes no number below zero', () => {
  const history = new ClientHistory();
  history.beginPoint(reported({ web: { held: 5, busy: 5 } }), 0);
  const after = history.list(reported({ web: { held: 1 } }, { web: { held: 5, busy: 5 } }), ten);
  assert.deepEqual(after.clients[0]?.history, { connections: [0.1], refused: [0] });
  const again = history.list(reported({ web: { held: 1, busy: 1 } }), ten);
  assert.deepEqual(again.clients[0]?.history, { connections: [0], refused: [0] });
  assert.equal(again.clients[0]?.refused_recently, 0);
});

test('ten minutes are kept, 200 clients are listed, and 30 of them have a history', () => {
  const history = new ClientHistory();
  const many = Object.fromEntries(
    Array.from({ length: 250 }, (_, n) => [`client-${n}`, { held: n }]),
  );
  for (let n = 0; n < 100; n += 1) history.beginPoint(reported(n === 0 ? {} : many), n * ten);
  const list = history.list(reported(many), 100 * ten);
  assert.equal(list.history.at.length, 60);
  assert.equal(list.clients.length, 200);
  assert.equal(list.omitted, 50);
  assert.equal(list.clients.filter(({ history: points }) => points !== null).length, 30);
  assert.equal(list.clients[0]?.history?.connections.length, 60);
});

// The history of the last minutes: rates from sums, quantiles from buckets, a bounded number of points.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  durationBounds,
  type Figures,
  History,
  quantileMs,
} from '../../../../src/supervisor/observe/stats.ts';

/** This many successful requests, all of which took `seconds`. */
function figures(ok: number, seconds = 0.001, dataRefusals = 0): Figures {
  const at = durationBounds.findIndex((bound) => seconds <= bound);
  const durations = [...durationBounds, 0].map((_, index) => (index === at ? ok : 0));
  const phases = { waiting: durations, first_row: durations };
  const sums = { requests: ok, outcomes: { ok }, failures: {}, durations, phases };
  return { ...sums, dataRefusals, busy: 3, max: 8, waiting: 2 };
}

test('a point has the increase since the one before, a second', () => {
  const history = new History();
  history.note(figures(100), 1_000_000);
  history.note(figures(120), 1_002_000);
  history.note(figures(120), 1_004_000);
  const reported = history.points();
  assert.deepEqual(reported.at, [1002, 1004]);
  assert.deepEqual(reported.outcomes.ok, [10, 0]);
  assert.deepEqual(reported.outcomes.unknown, [0, 0]);
  assert.deepEqual(reported.connections, { busy: [3, 3], max: [8, 8] });
  assert.deepEqual(reported.waiting, [2, 2]);
  const [p50, none] = reported.latency_ms.p50;
  assert.ok(p50 !== null && p50 !== undefined && p50 > 0.5 && p50 <= 1, `${p50}`);
  assert.equal(none, null);
  assert.deepEqual(reported.phases_p95_ms, {
    waiting: reported.latency_ms.p95,
    first_row: reported.latency_ms.p95,
  });
});

test('refusals by the data have a separate rate', () => {
  const history = new History();
  history.note(figures(100, 1, 5), 1_000_000);
  history.note(figures(120, 1, 9), 1_002_000);
  assert.deepEqual(history.points().data_refusals, [2]);
});

test('ten minutes are kept, however long it runs', () => {
  const history = new History();
  for (let n = 0; n < 1000; n += 1) history.note(figures(n), n * 2000);
  const { at, interval_seconds } = history.points();
  assert.equal(at.length * interval_seconds, 600);
  assert.equal(at.at(-1), 1998);
});

test('a clock that is set back makes no point, and no rate below zero', () => {
  const history = new History();
  history.note(figures(10), 10_000);
  history.note(figures(20), 5_000);
  history.note(figures(30), 7_000);
  assert.deepEqual(history.points().outcomes.ok, [5]);
});

test('quantiles lie within their bucket; beyond the last bound nothing longer is claimed', () => {
  const [first = 0, second = 0] = durationBounds;
  const none = durationBounds.map(() => 0);
  assert.equal(quantileMs([...none, 0], 0.5), null);
  assert.equal(quantileMs([2, ...none], 0.5), (first * 1000) / 2);
  const spread = quantileMs([1, 98, ...none.slice(1)], 0.99) ?? 0;
  assert.ok(spread > first * 1000 && spread <= second * 1000, `${spread}`);
  assert.equal(quantileMs([...none, 7], 0.5), (durationBounds.at(-1) ?? 0) * 1000);
});

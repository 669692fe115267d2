// The times of a request.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';

test('a moment that was taken before the wait began makes no wait negative', () => {
  const times = new RunTimes();
  const earlier = performance.now();
  times.enter('waiting', earlier + 1_000);
  times.enter('working', earlier);
  assert.equal(times.waitedMs, 0);
  times.enter('over', earlier + 500);
  assert.equal(times.workedMs, 0);
});

test('the wait and the work are counted between the moments that are given', () => {
  const times = new RunTimes();
  const from = performance.now();
  times.enter('waiting', from);
  times.enter('working', from + 30);
  times.enter('over', from + 100);
  assert.ok(Math.abs(times.waitedMs - 30) < 0.001);
  assert.ok(Math.abs(times.workedMs - 70) < 0.001);
});

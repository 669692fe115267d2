// A duration is counted in the first bucket that it fits into, its end included, as Prometheus' `le` has it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DurationHistogram } from '../../../../src/shared/observe/metrics.ts';

test('a duration at the end of a bucket belongs to it, and longer ones than all have the last one', () => {
  const histogram = new DurationHistogram([0.5, 1]);
  for (const seconds of [0, 0.5, 0.75, 1, 3]) histogram.observe(seconds);
  assert.deepEqual(histogram.read(), { counts: [2, 2, 1], sum: 5.25 });
});

test('a value that was read does not change any more', () => {
  const histogram = new DurationHistogram([1]);
  const before = histogram.read();
  histogram.observe(1);
  assert.deepEqual(before, { counts: [0, 0], sum: 0 });
});

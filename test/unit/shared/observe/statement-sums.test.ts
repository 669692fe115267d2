// Percentiles out of buckets are right within a bucket, from a tenth of a millisecond to hours.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  latencyBucket,
  latencyBuckets,
  latencyPercentile,
} from '../../../../src/shared/observe/statement-sums.ts';
import { fc } from '../../../support/property.ts';

function percentileOf(latencies: readonly number[], share: number): number | null {
  const counts = new Float64Array(latencyBuckets);
  for (const ms of latencies) counts[latencyBucket(ms)] = (counts[latencyBucket(ms)] ?? 0) + 1;
  return latencyPercentile(counts, share, Math.max(0, ...latencies));
}

test('every latency has a bucket, a longer one no lower one', () => {
  const latency = fc.double({ min: 0, max: 1e9, noNaN: true });
  fc.assert(
    fc.property(latency, latency, (one, other) => {
      const [low, high] = [
        latencyBucket(Math.min(one, other)),
        latencyBucket(Math.max(one, other)),
      ];
      assert.ok(low >= 0 && low <= high && high < latencyBuckets);
    }),
  );
});

test('a percentile is right within a quarter', () => {
  const latency = fc.double({ min: 0.1, max: 60_000, noNaN: true });
  fc.assert(
    fc.property(
      fc.array(latency, { minLength: 1, maxLength: 300 }),
      fc.constantFrom(0.5, 0.95, 0.99),
      (latencies, share) => {
        const sorted = latencies.toSorted((one, other) => one - other);
        const exact = sorted[Math.ceil(share * sorted.length) - 1] as number;
        const reported = percentileOf(latencies, share) as number;
        assert.ok(reported >= exact / 1.25 && reported <= exact * 1.25, `${reported} for ${exact}`);
      },
    ),
  );
});

test('no percentile is longer than the longest, and an empty table has none', () => {
  assert.equal(percentileOf([], 0.5), null);
  assert.equal(percentileOf([5], 0.99), 5);
  assert.ok((percentileOf([0.05, 0.05], 0.99) as number) <= 0.05);
  const long = percentileOf([3_600_000, 3_600_000], 0.5) as number;
  assert.ok(long >= 60_000 && long <= 3_600_000);
});

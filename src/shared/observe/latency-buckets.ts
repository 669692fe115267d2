// How latencies are counted so that percentiles of any number of them fit into a few bytes: by buckets of equal ratio.
// Must not know what takes so long.

const leastMs = 0.1;
const mostMs = 60_000;
/** The first is for all below the least, the last for all from the most on. */
export const latencyBuckets = 64;
const between = latencyBuckets - 2;
const ratio = (mostMs / leastMs) ** (1 / between);
const perLog = 1 / Math.log(ratio);

/** The bucket of a latency: each holds 24 % more than the one before, from 0.1 ms to 60 s. */
export function latencyBucket(ms: number): number {
  if (ms < leastMs) return 0;
  if (ms >= mostMs) return latencyBuckets - 1;
  return Math.min(between, 1 + Math.floor(Math.log(ms / leastMs) * perLog));
}

/**
 * The latency (ms) below which a share of those counted lies, right within its bucket. Null: nothing was counted.
 * @param counts by bucket
 * @param longestMs the longest that was counted
 */
export function latencyPercentile(
  counts: ArrayLike<number>,
  share: number,
  longestMs: number,
): number | null {
  let total = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) total += counts[bucket] as number;
  if (total === 0) return null;
  let left = share * total;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    const count = counts[bucket] as number;
    if (count > 0 && left <= count)
      return Math.min(longestMs, within(bucket, left / count, longestMs));
    left -= count;
  }
  return longestMs;
}

/** Where a part of a bucket's latencies lies, were they spread evenly by their logarithm. */
function within(bucket: number, part: number, longestMs: number): number {
  if (bucket === 0) return leastMs * part;
  const from = leastMs * ratio ** (bucket - 1);
  const to = bucket === latencyBuckets - 1 ? Math.max(longestMs, from) : from * ratio;
  return from * (to / from) ** part;
}

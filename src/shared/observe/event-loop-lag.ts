// How late this process's event loop is: what a request that arrives at any moment has to wait before anybody looks at it.
import { performance } from 'node:perf_hooks';
import { DurationHistogram, lagBuckets } from './metrics.ts';

/**
 * A timer says by how much it fires late. `monitorEventLoopDelay` sees more of the short delays, but wakes an idle process fifty times a
 * second at its usual resolution, for 0.3 % of a core where this takes 0.1 %, and what it knows cannot be added up over scrapes.
 */
const everyMs = 200;
/** The last ten seconds. */
const mostRecent = 50;

/** What has been measured. */
export type EventLoopLag = {
  /** Of all samples: each says what one moment would have waited. */
  readonly histogram: DurationHistogram;
  /** The longest one of the last ten seconds, in seconds. */
  readonly longest: () => number;
};

/** Measures from now on, for the life of the process; keeps nothing alive. */
export function measureEventLoopLag(): EventLoopLag {
  const histogram = new DurationHistogram(lagBuckets);
  const recent = new Float64Array(mostRecent);
  let samples = 0;
  let due = performance.now() + everyMs;
  setInterval(() => {
    const now = performance.now();
    // Timers count whole milliseconds, and may fire a fraction early.
    const seconds = Math.max(0, now - due) / 1000;
    histogram.observe(seconds);
    recent[samples % mostRecent] = seconds;
    samples += 1;
    due = now + everyMs;
  }, everyMs).unref();
  return { histogram, longest: () => Math.max(...recent) };
}

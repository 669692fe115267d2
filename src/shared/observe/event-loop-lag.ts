// The delay of this process's event loop: how long a request that arrives at any moment waits before the process reads it.
import { performance } from 'node:perf_hooks';
import { DurationHistogram, lagBuckets } from './metrics.ts';

/**
 * The interval of a timer, whose delay is measured. `monitorEventLoopDelay` sees more of the short delays. But at its usual resolution it wakes
 * an idle process fifty times a second, for 0.3 % of a core instead of 0.1 %, and its results cannot be summed up over scrapes.
 */
const everyMs = 200;
/** How many samples make ten seconds. */
const maxRecent = 50;

/** The delays so far. */
export type EventLoopLag = {
  /** All samples: each is the wait of a request that had come at that moment. */
  readonly histogram: DurationHistogram;
  /** The longest delay of the last ten seconds, in seconds. */
  readonly longest: () => number;
};

/** Measures from now on, for the life of the process, which it does not keep alive. */
export function measureEventLoopLag(): EventLoopLag {
  const histogram = new DurationHistogram(lagBuckets);
  const recent = new Float64Array(maxRecent);
  let samples = 0;
  let due = performance.now() + everyMs;
  setInterval(() => {
    const now = performance.now();
    // Timers count whole milliseconds, and may fire a fraction early.
    const seconds = Math.max(0, now - due) / 1000;
    histogram.observe(seconds);
    recent[samples % maxRecent] = seconds;
    samples += 1;
    due = now + everyMs;
  }, everyMs).unref();
  return { histogram, longest: () => Math.max(...recent) };
}

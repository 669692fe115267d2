// The slow readers of one section: how many sessions they may hold while others wait, and the log line about those that were given up.
// Must not know how a reader is found to have stalled.
import { performance } from 'node:perf_hooks';
import type { Log } from '../../shared/process/log.ts';
import { StalledReaders } from '../http/stalled-readers.ts';
import type { Backend } from '../servers/backend.ts';

/** Readers that are given up are told in the log so often at most. */
const stalledLogMs = 10_000;

/** Readers that are slow, and transactions that clients hold, keep half of a pool at most from those who wait. */
export function createStalledReaders(
  backends: readonly Backend[],
  onGivenUp: (count: number) => void,
  log: Log,
): StalledReaders {
  let lastTold = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return new StalledReaders({
    othersWait: () => backends.some(({ pool }) => pool.queue.length > 0),
    mostHeld: () => Math.max(0, Math.min(...backends.map(({ share }) => share.room))),
    onGivenUp: (count) => {
      onGivenUp(count);
      untold += count;
      const now = performance.now();
      if (now - lastTold < stalledLogMs) return;
      log.warn('slow readers held connections while requests waited', {
        reset: untold,
        pool: backends[0]?.pool.observations().size ?? 0,
      });
      lastTold = now;
      untold = 0;
    },
  });
}

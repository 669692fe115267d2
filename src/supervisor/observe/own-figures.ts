// What the supervisor's own process uses.
// Must not know its workers.
import { measureEventLoopLag } from '../../shared/observe/event-loop-lag.ts';
import type { OwnFigures } from './totals.ts';

/** Measures from now on. Returns what is known at the moment of each call; without a descriptor left, the memory as it was. */
export function measureOwnFigures(): () => OwnFigures {
  const lag = measureEventLoopLag();
  let memory = { rss: 0, heapUsed: 0 };
  return () => {
    try {
      memory = process.memoryUsage();
    } catch {
      // The system is asked by opening a file: EMFILE or ENFILE.
    }
    const { user, system } = process.cpuUsage();
    return {
      cpuSeconds: (user + system) / 1e6,
      residentBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      lag: lag.histogram.read(),
    };
  };
}

// One worker's service put together: pool, routes, HTTP server, drain.
// Must not know cluster or the supervisor: what it needs from outside is handed in.
import { createServer, type Server } from 'node:http';
import type { Config } from '../shared/config.ts';
import type { Log } from '../shared/log.ts';
import type { Snapshot } from '../shared/metrics.ts';

/** What the service needs from the process it lives in. */
export type Surroundings = {
  readonly config: Config;
  readonly log: Log;
  /** All workers' metrics as Prometheus text; rejects when the supervisor does not answer in time. */
  readonly scrape: () => Promise<string>;
};

/** A service that is not listening yet: whoever created it attaches `server` to the socket. */
export type Service = {
  readonly server: Server;
  readonly snapshot: () => Snapshot;
  /** Stops taking work, finishes what is in flight, closes the pool. Resolves when nothing is left. */
  readonly drain: () => Promise<void>;
};

/** Creates the service of one worker. The caller must drain it. */
export function createService(_surroundings: Surroundings): Service {
  const server = createServer((_request, response) => response.end('{}'));
  return {
    server,
    snapshot: () => ({ samples: [], histograms: [] }),
    drain: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

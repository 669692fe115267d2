// One worker's service put together: pool, routes, HTTP server, drain.
// Must not know cluster or the supervisor: what it needs from outside is handed in.
import type { Server } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Log } from '../shared/process/log.ts';
import type { Snapshot } from '../shared/process/metrics.ts';
import type { Config } from '../shared/settings/config.ts';
import type { Credentials } from '../shared/settings/credentials.ts';
import type { ReadyAnswer } from './backend/readiness.ts';
import { createDbEndpoint } from './endpoints/db/endpoint.ts';
import { createRoutes, failureFormatOf } from './endpoints/routes.ts';
import { createBatchEndpoint } from './endpoints/v1/batch.ts';
import { createQueryEndpoint } from './endpoints/v1/query.ts';
import { clientTimeouts } from './http/client-timeouts.ts';
import { rulesOf } from './http/compat.ts';
import { decideConnectionLimit, openFilesLimit } from './http/connection-limit.ts';
import { varyHeaders } from './http/cors.ts';
import type { Exchange } from './http/exchange.ts';
import { createTokenGuard } from './http/guard.ts';
import type { NodeInternals } from './http/node-internals.ts';
import { replaceKeyPair } from './http/plain-or-tls.ts';
import { createRequestIds } from './http/request-ids.ts';
import { createRouter } from './http/router.ts';
import { createHttpServer } from './http/server.ts';
import { StalledReaders } from './http/stalled-readers.ts';
import { IndexedSet } from './indexed-set.ts';
import { loadRowModule } from './load-row-module.ts';
import type { AccessLog } from './observe/access-log.ts';
import type { Observe } from './observe/observation.ts';
import { createRequestLog } from './observe/request-log.ts';
import { WorkerMetrics } from './observe/worker-metrics.ts';
import { asciiJson } from './reply/ascii-json.ts';
import { BufferPool } from './reply/buffers.ts';
import type { Backend } from './section/backend.ts';
import { Section } from './section/section.ts';

/** What the service needs from the process it lives in. */
export type Surroundings = {
  readonly config: Config;
  readonly log: Log;
  readonly internals: NodeInternals;
  /** Null: requests are not logged. */
  readonly accessLog: AccessLog | null;
  /** All workers' metrics as Prometheus text; rejects when the supervisor does not answer in time. */
  readonly scrape: () => Promise<string>;
  /** Tells the other workers that tables may have changed. */
  readonly tellTablesChanged: () => void;
};

/** A service that is not listening yet: whoever created it attaches `server` to the socket. */
export type Service = {
  readonly server: Server;
  readonly snapshot: () => Snapshot;
  /** A statement through another worker may have changed tables. */
  readonly tablesChanged: () => void;
  /** Looks up what a snapshot tells of the database, within 250 ms: what is not known by then is told next time. */
  readonly settle: () => Promise<void>;
  /** Uses them for connections and requests from now on. */
  readonly renew: (credentials: Credentials) => void;
  /** Closes the listener before it returns, finishes what is in flight, closes the pool. Resolves when nothing is left. */
  readonly drain: () => Promise<void>;
};

/** What one read from MySQL may bring, and 16 KiB. */
const arenaBytes = 144 * 1024;
/** Room for requests that are only half there; some of the longest must fit in any case. */
const leastHeldBytes = 64 * 1024 ** 2;
/** How long an idle keep-alive connection may still bring a request after the stop. */
const idleGraceMs = 1_000;
/** A write ends by its own deadline; its reply then needs a moment to leave. */
const writeGraceMs = 1_000;
/** Readers that are given up are told in the log so often at most. */
const stalledLogMs = 10_000;
/** A scrape has 700 ms to collect what all workers say. */
const mostSettleMs = 250;
const stopping: ReadyAnswer = { isReady: false, code: 'STOPPING', errno: null };

/** Creates the service of one worker. The caller must drain it. */
export function createService({
  config,
  log,
  internals,
  accessLog,
  scrape,
  tellTablesChanged,
}: Surroundings): Service {
  const rowModule = loadRowModule(log, arenaBytes);
  const arena = rowModule?.arena ?? Buffer.allocUnsafeSlow(arenaBytes);
  const section = new Section(config, { arena, tellTablesChanged, log });
  section.start();
  const metrics = new WorkerMetrics(config.slowQueryMs);
  const stalledReaders = createStalledReaders(section.backend, metrics, log);
  const noteInLog = createRequestLog(log, config.slowQueryMs);
  const observe: Observe = (observation) => {
    metrics.observe(observation);
    noteInLog(observation);
    accessLog?.observe(observation);
  };
  const live = new IndexedSet<Exchange>();
  let draining = false;

  const sql = {
    executor: section.executor,
    catalogue: section.backend.catalogue,
    live,
    buffers: new BufferPool(),
    rowModule,
    sectionJson: asciiJson(config.section),
    holdBytes: config.bufferBytes,
    retryAfterSeconds: () => section.backend.retryAfterSeconds,
    mostStatementBytes: () => section.backend.mostStatementBytes,
    stalledReaders,
    observe,
  };
  const db = createDbEndpoint(config, sql);
  const query = createQueryEndpoint(config, sql);
  const batch = createBatchEndpoint(config, sql);
  const askReady = async () => (draining ? stopping : await section.askReady());
  const tokenGuard = createTokenGuard(config.tokens);
  const nextRequestId = createRequestIds();
  const handle = createRouter(
    config,
    createRoutes(rulesOf[config.compat], { db, query, batch, askReady, scrape }),
    tokenGuard.check,
    { namesClients: accessLog !== null, observe },
    nextRequestId,
    failureFormatOf,
  );
  const http = createHttpServer(
    {
      maxUrlBytes: config.maxRequestBytes,
      mostHeldBytes: Math.max(leastHeldBytes, 4 * config.maxRequestBytes),
      keepaliveTimeoutMs: config.keepaliveTimeoutMs,
      // Two more connections to the database than the pool's: control and readiness.
      connections: decideConnectionLimit(openFilesLimit(), config.pool + 2),
      timeouts: clientTimeouts,
      tls: config.httpsTexts,
    },
    handle,
    internals,
    {
      nextRequestId,
      headers: varyHeaders(config.allowOrigins),
      observe: (client, { status, code, message }, bytes, requestId) => {
        const refused = { client, status, code, reason: message, bytes, requestId };
        observe({ kind: 'no request', refused });
      },
    },
  );
  http.server.on('error', () => {
    metrics.descriptorShortages += 1;
  });

  return {
    server: http.server,
    tablesChanged: () => section.tablesChanged(),
    snapshot: () => {
      const clients = { inFlight: http.inFlight(), ...http.connections() };
      metrics.coalesced = section.coalesced;
      metrics.readiness = draining ? stopping : section.readiness;
      return metrics.snapshot(section.backend.observations(), clients);
    },
    settle: async () => {
      await Promise.race([askReady(), pause(mostSettleMs, undefined, { ref: false })]);
    },
    renew: (credentials) => {
      section.renew(credentials);
      tokenGuard.replace(credentials.tokens);
      if (credentials.httpsTexts !== null) replaceKeyPair(http.server, credentials.httpsTexts);
    },
    drain: async () => {
      draining = true;
      const reads = setTimeout(() => {
        for (const exchange of live) exchange.endForStop();
      }, config.drainTimeoutMs);
      const writes = setTimeout(
        () => http.destroyConnections(),
        Math.max(config.drainTimeoutMs, config.statementTimeoutMs) + writeGraceMs,
      );
      const lastReplyLeft = http.drain(idleGraceMs);
      // A successor opens connections of its own from now on.
      section.keepNothingIdle();
      await lastReplyLeft;
      clearTimeout(reads);
      clearTimeout(writes);
      await section.close();
    },
  };
}

/**
 * Readers that took nothing for a while keep half of the pool at most, rounded up, from those who wait; where the pipeline
 * has the other half, one less, for what it does not take.
 */
function createStalledReaders(
  { pool, pipeline }: Backend,
  metrics: WorkerMetrics,
  log: Log,
): StalledReaders {
  let lastTold = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return new StalledReaders({
    othersWait: () => pool.queue.length > 0,
    mostHeld: () => {
      const { size } = pool.observations();
      const inPipeline = pipeline?.observations().connections ?? 0;
      const half = Math.ceil(size / 2);
      return inPipeline === 0 ? half : Math.min(half, size - inPipeline - 1);
    },
    onGivenUp: (count) => {
      metrics.readersGivenUp += count;
      untold += count;
      const now = performance.now();
      if (now - lastTold < stalledLogMs) return;
      log.warn('readers that took nothing held connections while requests waited', {
        reset: untold,
        pool: pool.observations().size,
      });
      lastTold = now;
      untold = 0;
    },
  });
}

// One worker's service put together: pool, routes, HTTP server, drain.
// Must not know cluster or the supervisor: what it needs from outside is handed in.
import type { Server } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../shared/config/config.ts';
import type { Credentials } from '../shared/config/credentials.ts';
import type { Snapshot } from '../shared/observe/metrics.ts';
import type { StatementsReport } from '../shared/observe/statement-sums.ts';
import type { RecentError, ServerVerdict } from '../shared/observe/stats.ts';
import type { Caller } from '../shared/process/calls.ts';
import type { EndedName, Ending } from '../shared/process/commit-endings.ts';
import type { Log } from '../shared/process/log.ts';
import type { SupervisorCalls } from '../shared/process/messages.ts';
import { removeWorkerSocket, workerSocketPath } from '../shared/process/socket-paths.ts';
import type { PrimaryMemory } from '../shared/servers/primary-memory.ts';
import { BufferPool } from './encode/writer.ts';
import { createDbEndpoint } from './endpoints/db/endpoint.ts';
import { createDriverHandlers, type DriverHandlers } from './endpoints/planetscale/endpoint.ts';
import { DriverSessions } from './endpoints/planetscale/session.ts';
import { createRoutes, failureFormatOf } from './endpoints/routes.ts';
import {
  createSqlHandler,
  type EndpointContext,
  type SqlEndpoint,
} from './endpoints/sql-endpoint.ts';
import { createBatchEndpoint } from './endpoints/v1/batch.ts';
import { createQueryEndpoint } from './endpoints/v1/query.ts';
import { createBegin, createEnd } from './endpoints/v1/transaction.ts';
import type { ReadyAnswer } from './endpoints/watching.ts';
import {
  type CommitKeeper,
  HeldTransactions,
  type TransactionOwner,
} from './execution/transactions/held-transactions.ts';
import { acceptForwarded, type ForwardedConnections } from './http/forward.ts';
import { clientTimeouts, decideConnectionLimit, openFilesLimit } from './http/limits.ts';
import type { NodeInternals } from './http/node-internals.ts';
import { Peers } from './http/peers.ts';
import { createRequestIds } from './http/request.ts';
import { HttpServer, replaceKeyPair } from './http/server.ts';
import { loadConsoleFiles } from './load-console-files.ts';
import { loadRowModule } from './load-row-module.ts';
import type { AccessLog } from './observe/access-log.ts';
import { WorkerMetrics } from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { RecentErrors } from './observe/recent-errors.ts';
import { createRequestLog } from './observe/request-log.ts';
import { StatementTable } from './observe/statement-table.ts';
import { rulesOf } from './request/compat.ts';
import { varyHeaders } from './request/cors.ts';
import type { Exchange } from './request/exchange.ts';
import { createTokenGuard } from './request/guard.ts';
import { LiveExchanges } from './request/live-exchanges.ts';
import { LongWork } from './request/long-work.ts';
import { createRouter } from './request/router.ts';
import { Section } from './section.ts';
import { ServedSection, stopping } from './served-section.ts';

/** What the service needs from the process it lives in. */
export type Surroundings = {
  /** The first is the instance's: where to listen, who may ask and what is logged stands in it. */
  readonly sections: readonly [Config, ...Config[]];
  readonly log: Log;
  readonly internals: NodeInternals;
  /** Null: requests are not logged. */
  readonly accessLog: AccessLog | null;
  /** Asks what only the supervisor knows. */
  readonly supervisor: Caller<SupervisorCalls>;
  /** Who this worker is, for the tokens of transactions that clients hold in it. */
  readonly owner: TransactionOwner;
  /** Tells the other workers that tables may have changed. */
  readonly tellTablesChanged: () => void;
  /** What is remembered of the primary, by section; a section without a memory is missing. */
  readonly primaries: Readonly<Record<string, PrimaryMemory>>;
};

/** A service that is not listening yet: whoever created it attaches `server` to the socket. */
export type Service = {
  readonly server: Server;
  /** From here on the instance's other workers pass requests on to this one. */
  readonly acceptForwarded: () => void;
  readonly snapshot: () => Snapshot;
  /** A statement through another worker may have changed tables. */
  readonly tablesChanged: () => void;
  /** All workers remember this of a section's primary from now on. */
  readonly rememberPrimary: (section: string, memory: PrimaryMemory) => void;
  /** What is made of each of several servers; nothing of a section's only one. */
  readonly verdicts: () => readonly ServerVerdict[];
  /** The requests that went wrong since it was asked last. */
  readonly takeErrors: () => readonly RecentError[];
  /** What has come to each statement since it was asked last; null: nothing. */
  readonly takeStatements: () => StatementsReport | null;
  /** What is being answered now. */
  readonly live: Pick<LiveExchanges<Exchange>, 'tell' | 'kill'>;
  /** Looks up what a snapshot tells of the database, within 250 ms: what is not known by then is told next time. */
  readonly settle: () => Promise<void>;
  /** Uses them for connections and requests from now on. */
  readonly renew: (credentials: readonly [Credentials, ...Credentials[]]) => void;
  /**
   * Accepts what the kernel holds (unless the socket stays), closes the listener (`onClosed`), finishes what is in flight,
   * closes the pool. Resolves when nothing is left.
   */
  readonly drain: (socketStays: boolean, onClosed: () => void) => Promise<void>;
  /**
   * Kills what runs in MySQL and rolls back what can be. Resolves when all of it has ended and was answered, also by other workers, and
   * at the latest after `answerBoundMs`. The log then has each write whose outcome is unknown, and the process must end.
   */
  readonly stopNow: () => Promise<void>;
};

/** What one read from MySQL may bring, and 16 KiB. */
const arenaBytes = 144 * 1024;
/** Room for requests that are only half there; some of the longest must fit in any case. */
const leastHeldBytes = 64 * 1024 ** 2;
/** How long an idle keep-alive connection may still bring a request after the stop. */
const idleGraceMs = 1_000;
/** A write ends by its own deadline; its reply then needs a moment to leave. */
const writeGraceMs = 1_000;
/** A stop at once takes a second at most: the rest is for the report and the log. */
const killBoundMs = 700;
/** What was passed on to another worker is answered when that one has given up, too. */
const answerBoundMs = 850;
const answerCheckMs = 10;
/** A scrape has 700 ms to collect what all workers say. */
const mostSettleMs = 250;

/** Creates the service of one worker. The caller must drain it. */
export function createService({
  sections,
  log,
  internals,
  accessLog,
  supervisor,
  owner,
  tellTablesChanged,
  primaries,
}: Surroundings): Service {
  const [config] = sections;
  const rowModule = loadRowModule(log, arenaBytes);
  const arena = rowModule?.arena ?? Buffer.allocUnsafeSlow(arenaBytes);
  const metrics = new WorkerMetrics(openFilesLimit());
  const recentErrors = new RecentErrors();
  const statements = new StatementTable();
  const noteInLog = createRequestLog(log, config.slowQueryMs);
  const observe: Observe = (observation) => {
    metrics.observe(observation);
    recentErrors.observe(observation);
    statements.observe(observation);
    noteInLog(observation);
    accessLog?.observe(observation);
  };
  const live = new LiveExchanges<Exchange>();
  let draining = false;
  let transactionsEnded: Promise<void> | null = null;
  let hardStop: Promise<void> | null = null;
  let forwarded: ForwardedConnections | null = null;

  const peers = new Peers(clientTimeouts);
  const shared = {
    live,
    peers,
    buffers: new BufferPool(),
    rowModule,
    holdBytes: config.bufferBytes,
    slowQueryMs: config.slowQueryMs,
    observe,
    log,
  };
  const serve = (own: Config) =>
    new ServedSection(
      new Section(own, {
        arena,
        tellTablesChanged,
        memory: primaries[own.section] ?? null,
        proposePrimary: (base, memory) =>
          supervisor.ask('proposePrimary', { section: own.section, base, memory }),
        log,
      }),
      shared,
    );
  const [first, ...others] = sections;
  const served: readonly [ServedSection, ...ServedSection[]] = [serve(first), ...others.map(serve)];
  for (const { section } of served) section.start();
  const transactions = new HeldTransactions(owner, keepCommits(supervisor));
  const socketOf = (pid: number) => workerSocketPath(config.pidfile, pid);
  const held = { transactions, socketOf, peers };
  const endpoints = { config, observe, longWork: new LongWork(), held };
  const handlerOf = (endpoint: SqlEndpoint) => createSqlHandler(endpoints, endpoint);
  const drivers = createDrivers(endpoints, served[0]);
  const askReady = async () => (draining ? stopping : await askSections(served));
  const tokenGuard = createTokenGuard(config.tokens);
  const nextRequestId = createRequestIds();
  const handle = createRouter(
    config,
    createRoutes(rulesOf[config.compat], {
      db: handlerOf(createDbEndpoint(served)),
      query: handlerOf(createQueryEndpoint(served, transactions)),
      batch: handlerOf(createBatchEndpoint(served)),
      begin: handlerOf(createBegin(served, transactions)),
      commit: handlerOf(createEnd(served, transactions, 'commit')),
      rollback: handlerOf(createEnd(served, transactions, 'rollback')),
      drivers: drivers === null ? null : drivers.handlers,
      askReady,
      supervisor,
      consoleFiles: config.console ? loadConsoleFiles(log) : null,
    }),
    tokenGuard,
    { namesClients: accessLog !== null, observe },
    nextRequestId,
    failureFormatOf,
  );
  const http = new HttpServer(
    {
      maxUrlBytes: config.maxRequestBytes,
      maxBufferedBytes: Math.max(leastHeldBytes, 4 * config.maxRequestBytes),
      keepaliveTimeoutMs: config.keepaliveTimeoutMs,
      connections: decideConnectionLimit(openFilesLimit(), countConnections(sections)),
      timeouts: clientTimeouts,
      peers,
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

  const endTransactions = (): Promise<void> => {
    transactionsEnded ??= transactions.close();
    return transactionsEnded;
  };
  const endAll = async (): Promise<void> => {
    const since = performance.now();
    draining = true;
    void endTransactions();
    for (const { section } of served) section.keepNothingIdle();
    for (const exchange of [...live]) exchange.endNow();
    // Nothing is begun any more. A session is given back when what ran on it has ended.
    const closed = Promise.all(served.map((one) => one.close()));
    await Promise.race([closed, pause(killBoundMs)]);
    for (const exchange of [...live]) exchange.giveUp();
    const isOver = () => http.inFlight === 0 || performance.now() - since >= answerBoundMs;
    while (!isOver()) await pause(answerCheckMs);
  };
  const stopNow = (): Promise<void> => {
    hardStop ??= endAll();
    return hardStop;
  };

  return {
    server: http.server,
    acceptForwarded: () => {
      // Left over by another process that had our number.
      removeWorkerSocket(config.pidfile, owner.pid);
      forwarded = acceptForwarded(
        held.socketOf(owner.pid),
        (socket) => http.takeForwarded(socket),
        (error) =>
          log.error('requests of transactions cannot be passed on to this worker', {
            reason: error.message,
          }),
      );
    },
    tablesChanged: () => {
      for (const { section } of served) section.tablesChanged();
    },
    rememberPrimary: (name, memory) => {
      served.find(({ config: own }) => own.section === name)?.section.rememberPrimary(memory);
    },
    snapshot: () => {
      const clients = { inFlight: http.inFlight, ...http.connections };
      const told = served.map((one) => one.snapshot(draining));
      return {
        samples: [...metrics.samples(clients), ...told.flatMap(({ samples }) => samples)],
        histograms: told.flatMap(({ histograms }) => histograms),
      };
    },
    live,
    verdicts: () => served.flatMap((one) => one.verdicts()),
    takeErrors: () => recentErrors.take(),
    takeStatements: () => statements.take(),
    settle: async () => {
      await Promise.race([askReady(), pause(mostSettleMs, undefined, { ref: false })]);
    },
    renew: (credentials) => {
      for (const [at, { section }] of served.entries()) {
        const own = credentials[at];
        if (own !== undefined) section.renew(own);
      }
      const [{ tokens, httpsTexts }] = credentials;
      tokenGuard.replace(tokens);
      drivers?.sessions.replaceSecret(driverSecret(config, tokens));
      if (httpsTexts !== null) replaceKeyPair(http.server, httpsTexts);
    },
    stopNow,
    drain: async (socketStays, onClosed) => {
      draining = true;
      const lastTransactionEnded = endTransactions();
      const reads = setTimeout(() => {
        for (const exchange of live) exchange.endForStop();
      }, config.drainTimeoutMs);
      const bound = new AbortController();
      const writesMs = Math.max(config.drainTimeoutMs, ...sections.map(longestWait)) + writeGraceMs;
      const timeIsUp = pause(writesMs, undefined, { signal: bound.signal }).then(
        async () => {
          await stopNow();
          void forwarded?.close();
          http.destroyConnections();
        },
        () => {},
      );
      const lastReplyLeft = http.drain(idleGraceMs, socketStays, onClosed);
      // A successor opens connections of its own from now on.
      for (const { section } of served) section.keepNothingIdle();
      await lastReplyLeft;
      // Other workers' clients may still wait for what runs here, or ask what became of it.
      await Promise.race([lastTransactionEnded, timeIsUp]);
      await forwarded?.close();
      clearTimeout(reads);
      await Promise.race([Promise.all(served.map((one) => one.close())), timeIsUp]);
      bound.abort();
    },
  };
}

/** What must be known of a COMMIT when the worker that sent it is gone is known to the supervisor. */
function keepCommits(supervisor: Caller<SupervisorCalls>): CommitKeeper {
  const note = async (name: EndedName, ending: Ending) => {
    await supervisor.ask('noteCommit', { name, ending });
  };
  return {
    begun: (name) => note(name, 'unknown'),
    settled: (name, isCommitted) => note(name, isCommitted ? 'committed' : 'over'),
    left: (name) => note(name, 'partial'),
    doubted: (name) => note(name, 'unproven'),
    endingOf: async (name) => (await supervisor.ask('endingOfCommit', name)) ?? 'unknown',
  };
}

/** How many connections to databases there may be at once: control and probe beside each pool. */
function countConnections(sections: readonly Config[]): number {
  return sections.reduce((sum, { pool }) => sum + pool + 2, 0);
}

/** What drivers are served by. */
type Drivers = { readonly handlers: DriverHandlers; readonly sessions: DriverSessions };

/** Null: they are switched off. */
function createDrivers(context: EndpointContext, served: ServedSection): Drivers | null {
  const { config } = served;
  if (config.drivers === 'off') return null;
  const sessions = new DriverSessions(driverSecret(config, config.tokens));
  const { transactions } = context.held;
  const handlers = createDriverHandlers(context, served, sessions, transactions);
  return { handlers, sessions };
}

/** Of gateways that share no file the tokens are what they have in common. */
function driverSecret({ sessionKey }: Config, tokens: readonly string[]): string {
  return sessionKey ?? tokens.join('\n');
}

function longestWait({ statementTimeoutMs }: Config): number {
  return statementTimeoutMs;
}

/** Ready while any of the sections can be served: the others' clients are told by their own replies. */
async function askSections(served: readonly ServedSection[]): Promise<ReadyAnswer> {
  const answers = await Promise.all(served.map(({ section }) => section.askReady()));
  const answer = answers.find(({ isReady }) => isReady) ?? (answers[0] as ReadyAnswer);
  const isPlain = served.every(({ section }) => section.servers === null) && served.length === 1;
  if (isPlain) return answer;
  const sections = served.map(({ section, config }, at) => {
    const ready = answers[at]?.isReady === true;
    const statuses = section.servers?.statuses;
    const servers = statuses && {
      roles: statuses.map(({ role }) => role),
      reasons: statuses.map(({ reason }) => reason),
      no_primary: section.servers?.none ?? undefined,
    };
    return [config.section, { ready, ...servers }] as const;
  });
  return { ...answer, sections: Object.fromEntries(sections) };
}

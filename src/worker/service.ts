// One worker's service: its sections, endpoints and HTTP server put together, and how they drain.
import { readdirSync, readFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { listClients } from '../shared/config/access.ts';
import type { Config } from '../shared/config/config.ts';
import type { Credentials, SectionCredentials } from '../shared/config/credentials.ts';
import { schemaOfRow } from '../shared/database/row-schema.ts';
import type { NamedBySection } from '../shared/named/load-sections.ts';
import type { Snapshot } from '../shared/observe/metrics.ts';
import type { StatementsReport } from '../shared/observe/statement-sums.ts';
import type { RecentError, ServerVerdict } from '../shared/observe/stats.ts';
import type { Caller } from '../shared/process/calls.ts';
import type { EndedName, Ending } from '../shared/process/commit-endings.ts';
import type { Log } from '../shared/process/log.ts';
import type { Renewed, SupervisorCalls } from '../shared/process/messages.ts';
import { removeWorkerSocket, workerSocketPath } from '../shared/process/socket-paths.ts';
import type { PrimaryMemory } from '../shared/servers/primary-memory.ts';
import { App } from './app.ts';
import { RowModule } from './encode/row-module.ts';
import { BufferPool } from './encode/writer.ts';
import { type ConsoleFiles, isConsoleFile } from './endpoints/console.ts';
import { createDbEndpoint } from './endpoints/db/endpoint.ts';
import type { Route } from './endpoints/endpoint.ts';
import type { HeldRequests } from './endpoints/held-requests.ts';
import { createMcpEndpoint } from './endpoints/mcp/endpoint.ts';
import { createNamedTools } from './endpoints/mcp/named-tools.ts';
import { sqlTools } from './endpoints/mcp/tools.ts';
import { type NamedFacts, NamedStatements } from './endpoints/named/statements.ts';
import { createDriverEndpoints } from './endpoints/planetscale/endpoint.ts';
import { DriverSessions } from './endpoints/planetscale/session.ts';
import { createTablesEndpoint } from './endpoints/tables/endpoint.ts';
import { createBatchEndpoint } from './endpoints/v1/batch.ts';
import { createNamedEndpoint } from './endpoints/v1/named.ts';
import { createQueryEndpoint } from './endpoints/v1/query.ts';
import { createBegin, createEnd } from './endpoints/v1/transaction.ts';
import type { ReadyAnswer } from './endpoints/watching.ts';
import { describeResource } from './endpoints/well-known.ts';
import {
  type CommitKeeper,
  OpenTransactions,
  type TransactionOwner,
} from './execution/transactions/open-transactions.ts';
import { acceptForwarded, type ForwardedConnections } from './http/forward.ts';
import { oldHeads, strictHeads } from './http/head-form.ts';
import { clientTimeouts, decideConnectionLimit, openFilesLimit } from './http/limits.ts';
import { Peers } from './http/peers.ts';
import { createRequestIds } from './http/request-ids.ts';
import { HttpServer } from './http/server.ts';
import { replaceKeyPair } from './http/tls.ts';
import type { AccessLog } from './observe/access-log.ts';
import { ClientMetrics } from './observe/client-metrics.ts';
import { sample, WorkerMetrics } from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { RecentErrors } from './observe/recent-errors.ts';
import { createRejectedPagesLog } from './observe/rejected-pages.ts';
import { createRequestLog } from './observe/request-log.ts';
import { StatementTable } from './observe/statement-table.ts';
import { rulesOf } from './request/compat.ts';
import { varyHeaders } from './request/cors.ts';
import type { Exchange } from './request/exchange.ts';
import { Identifier } from './request/identify.ts';
import { LiveExchanges } from './request/live-exchanges.ts';
import { LongWork } from './request/long-work.ts';
import { createRoutes, type McpAnswers, mcpPath } from './routes.ts';
import { Section, stopping } from './section.ts';
import { Accounts } from './servers/account.ts';

/** The parts that the service gets from its process. */
export type Surroundings = {
  /** The first is the instance's: it says where to listen, who may ask and what is logged. */
  readonly sections: readonly [Config, ...Config[]];
  readonly log: Log;
  /** Null: requests are not logged. */
  readonly accessLog: AccessLog | null;
  /** Asks what only the supervisor knows. */
  readonly supervisor: Caller<SupervisorCalls>;
  /** This worker's identity, for the tokens of transactions that clients hold in it. */
  readonly owner: TransactionOwner;
  /** Reports to the other workers that tables may have changed. */
  readonly reportTablesChanged: () => void;
  /** The remembered primary of each section; sections without one are missing. */
  readonly primaries: Readonly<Record<string, PrimaryMemory>>;
  /** The named statements of each section that has some. */
  readonly named: NamedBySection;
};

/** The most that one read from MySQL brings, and 16 KiB. */
const arenaBytes = 144 * 1024;
/** Memory for requests that have not arrived in full; some of the longest must fit. */
const minBufferedBytes = 64 * 1024 ** 2;
/** How long an idle keep-alive connection may still bring a request after the stop. */
const idleGraceMs = 1_000;
/** A write ends by its own deadline; its reply then needs a moment to leave. */
const writeGraceMs = 1_000;
/** A stop at once takes a second at most: the rest is for the report and the log. */
const killBoundMs = 700;
/** Requests that were passed on to another worker are answered when that one has given up, too. */
const answerBoundMs = 850;
const answerCheckMs = 10;
/** A scrape has 700 ms to collect the reports of all workers. */
const maxSettleMs = 250;

/** A service that is not listening yet. Its owner attaches `server` to the socket, and must drain it. */
export class Service {
  readonly server: Server;
  /** The requests in flight. */
  readonly live = new LiveExchanges<Exchange>();
  /** The accounts of the clients, over all sections. */
  readonly accounts: Accounts;
  readonly #surroundings: Surroundings;
  /** The instance's. */
  readonly #config: Config;
  readonly #observers: Observers;
  readonly #sections: readonly [Section, ...Section[]];
  readonly #named: NamedStatements;
  readonly #held: HeldRequests;
  readonly #identifier: Identifier;
  /** Null: drivers are switched off. */
  readonly #driverSessions: DriverSessions | null;
  readonly #http: HttpServer;
  #forwarded: ForwardedConnections | null = null;
  #hasRowModule = false;
  #isDraining = false;
  #transactionsEnded: Promise<void> | null = null;
  #stopped: Promise<void> | null = null;

  constructor(surroundings: Surroundings) {
    const { sections, log, accessLog, owner, supervisor } = surroundings;
    const [config] = sections;
    this.#surroundings = surroundings;
    this.#config = config;
    this.accounts = new Accounts(listClients(config.tokens, config.access));
    this.#observers = new Observers(config, log, accessLog, this.accounts);
    const observe: Observe = (observation) => this.#observers.observe(observation);
    const peers = new Peers(clientTimeouts);
    this.#sections = this.#openSections(peers, observe);
    this.#named = new NamedStatements(
      this.#sections,
      surroundings.named,
      namedFacts(this.#sections),
    );
    const transactions = new OpenTransactions(owner, keepCommits(supervisor));
    const socketOf = (pid: number) => workerSocketPath(config.pidfile, pid);
    this.#held = { transactions, socketOf, peers };
    this.#identifier = createIdentifier(config, supervisor);
    const secret = driverSecret(config, config);
    this.#driverSessions = config.drivers === 'off' ? null : new DriverSessions(secret);
    const nextRequestId = createRequestIds();
    const app = new App({
      config,
      routes: this.#createRoutes(),
      identify: this.#identifier.identify,
      observer: { needsAddresses: accessLog !== null, observe },
      nextRequestId,
      longWork: new LongWork(maxBufferedBytes(config)),
      held: this.#held,
    });
    this.#http = this.#createHttp(app, peers, nextRequestId, observe);
    this.server = this.#http.server;
    for (const section of this.#sections) section.start();
    this.#describeNamed(surroundings.named);
  }

  #openSections(peers: Peers, observe: Observe): readonly [Section, ...Section[]] {
    const { sections, log, supervisor, reportTablesChanged, primaries } = this.#surroundings;
    const { bufferBytes: holdBytes, slowQueryMs } = this.#config;
    const rowModule = loadRowModule(log, arenaBytes);
    this.#hasRowModule = rowModule !== null;
    const arena = rowModule?.arena ?? Buffer.allocUnsafeSlow(arenaBytes);
    const buffers = new BufferPool();
    const { live, accounts } = this;
    const open = (config: Config) =>
      new Section(config, {
        arena,
        reportTablesChanged,
        log,
        live,
        accounts,
        peers,
        buffers,
        rowModule,
        holdBytes,
        slowQueryMs,
        observe,
        memory: primaries[config.section] ?? null,
        proposePrimary: (base, memory) =>
          supervisor.ask('proposePrimary', { section: config.section, base, memory }),
      });
    const [first, ...others] = sections;
    return [open(first), ...others.map(open)];
  }

  #createRoutes(): readonly Route[] {
    const { log, supervisor } = this.#surroundings;
    const { compat, console, mcp } = this.#config;
    const sections = this.#sections;
    const { transactions } = this.#held;
    const sessions = this.#driverSessions;
    return createRoutes(rulesOf[compat], {
      db: createDbEndpoint(sections),
      query: createQueryEndpoint(sections, transactions),
      batch: createBatchEndpoint(sections, this.#named),
      named: createNamedEndpoint(sections, this.#named, transactions),
      statements: this.#named,
      tables: createTablesEndpoint(sections),
      begin: createBegin(sections, transactions),
      commit: createEnd(sections, transactions, 'commit'),
      rollback: createEnd(sections, transactions, 'rollback'),
      mcp: mcp ? this.#createMcp() : null,
      drivers: sessions === null ? null : createDriverEndpoints(sections, sessions, transactions),
      askReady: () => this.#askReady(),
      supervisor,
      consoleFiles: console ? loadConsoleFiles(log) : null,
    });
  }

  #createMcp(): McpAnswers {
    const { url, jwtIssuer } = this.#config;
    return {
      endpoint: createMcpEndpoint(this.#sections, createNamedTools(this.#named)),
      resource: describeResource(url, jwtIssuer, mcpPath),
    };
  }

  #createHttp(app: App, peers: Peers, nextRequestId: () => string, observe: Observe): HttpServer {
    const { sections } = this.#surroundings;
    const { maxRequestBytes, keepaliveTimeoutMs, httpsTexts, allowOrigins, compat } = this.#config;
    const http = new HttpServer(
      {
        maxUrlBytes: maxRequestBytes,
        heads: rulesOf[compat].looseHeads ? oldHeads : strictHeads,
        maxBufferedBytes: maxBufferedBytes(this.#config),
        keepaliveTimeoutMs,
        connections: decideConnectionLimit(openFilesLimit(), countConnections(sections)),
        timeouts: clientTimeouts,
        peers,
        tls: httpsTexts,
      },
      (request, reply, isBeyondLimit) => app.receive(request, reply, isBeyondLimit),
      {
        nextRequestId,
        headers: varyHeaders(allowOrigins),
        observe: (address, { status, code, message }, bytes, requestId) => {
          const refused = { address, status, code, reason: message, bytes, requestId };
          observe({ kind: 'malformed request', refused });
        },
      },
    );
    http.server.on('error', () => {
      this.#observers.metrics.descriptorShortages += 1;
    });
    return http;
  }

  /** From here on the instance's other workers pass requests on to this one. */
  acceptForwarded(): void {
    const { owner, log } = this.#surroundings;
    // Another process with the same id may have left it.
    removeWorkerSocket(this.#config.pidfile, owner.pid);
    this.#forwarded = acceptForwarded(
      this.#held.socketOf(owner.pid),
      (socket) => this.#http.takeForwarded(socket),
      ({ message: reason }) =>
        log.error('requests of transactions cannot be passed on to this worker', { reason }),
    );
  }

  /** A statement through another worker may have changed tables. */
  tablesChanged(): void {
    for (const section of this.#sections) section.tablesChanged();
  }

  /** From now on all workers remember this of a section's primary. */
  rememberPrimary(name: string, memory: PrimaryMemory): void {
    this.#sections.find(({ config }) => config.section === name)?.rememberPrimary(memory);
  }

  snapshot(): Snapshot {
    const clients = { inFlight: this.#http.inFlight, ...this.#http.connections };
    const all = this.#sections.map((section) => section.snapshot(this.#isDraining));
    const samples = this.#observers.metrics.samples(clients);
    const rows = sample('dbhttpd_webassembly_rows', this.#hasRowModule ? 1 : 0);
    this.accounts.sweep();
    const ofClients = this.#observers.clients.samples(performance.now());
    return {
      samples: [...samples, rows, ...ofClients, ...all.flatMap((one) => one.samples)],
      histograms: all.flatMap(({ histograms }) => histograms),
    };
  }

  /** The role of each server, in sections that have several. */
  verdicts(): readonly ServerVerdict[] {
    return this.#sections.flatMap((section) => section.verdicts());
  }

  /** The requests that have failed since the last call. */
  takeErrors(): readonly RecentError[] {
    return this.#observers.recentErrors.take();
  }

  /** The cost of the statements since the last call; null: there were none. */
  takeStatements(): StatementsReport | null {
    return this.#observers.statements.take();
  }

  /** Asks for what a snapshot says of the database, within 250 ms: what is not known by then is in the next one. */
  async settle(): Promise<void> {
    await Promise.race([this.#askReady(), pause(maxSettleMs, undefined, { ref: false })]);
  }

  /** Uses them for connections and requests from now on. */
  renew({ credentials, named }: Renewed): void {
    if (credentials !== null) this.#renewCredentials(credentials);
    if (named === null) return;
    this.#named.replace(named);
    this.#describeNamed(named);
  }

  #describeNamed(named: NamedBySection): void {
    for (const section of this.#sections) section.useNamed(named[section.config.section] ?? []);
  }

  #renewCredentials(credentials: SectionCredentials): void {
    for (const [at, section] of this.#sections.entries()) {
      const own = credentials[at];
      if (own !== undefined) section.renew(own);
    }
    const [first] = credentials;
    const { httpsTexts } = first;
    this.accounts.replace(listClients(first.tokens, first.access));
    this.#identifier.replace(first);
    this.#driverSessions?.replaceSecret(driverSecret(this.#config, first));
    if (httpsTexts !== null) replaceKeyPair(this.server, httpsTexts);
  }

  /**
   * Accepts what the kernel holds (unless the socket stays), closes the listener (`onClosed`), finishes what is in flight,
   * closes the pool. Resolves when nothing is left.
   */
  async drain(socketStays: boolean, onClosed: () => void): Promise<void> {
    this.#isDraining = true;
    const { drainTimeoutMs } = this.#config;
    const lastTransactionEnded = this.#endTransactions();
    const reads = setTimeout(() => {
      for (const exchange of this.live) exchange.endForStop();
    }, drainTimeoutMs);
    const bound = new AbortController();
    const longest = this.#sections.map(({ config }) => config.statementTimeoutMs);
    const writesMs = Math.max(drainTimeoutMs, ...longest) + writeGraceMs;
    const timeIsUp = pause(writesMs, undefined, { signal: bound.signal }).then(
      async () => {
        await this.stopNow();
        void this.#forwarded?.close();
        this.cutConnections();
      },
      () => {},
    );
    const lastReplyLeft = this.#http.drain(idleGraceMs, socketStays, onClosed);
    // From now on a successor opens its own connections.
    for (const section of this.#sections) section.keepNothingIdle();
    await lastReplyLeft;
    // Other workers' clients may still wait for what runs here, or ask what became of it.
    await Promise.race([lastTransactionEnded, timeIsUp]);
    await this.#forwarded?.close();
    clearTimeout(reads);
    await Promise.race([this.#closeSections(), timeIsUp]);
    bound.abort();
  }

  /**
   * Kills what runs in MySQL and rolls back what can be. Resolves when all of it has ended and was answered, also by other workers, and
   * at the latest after `answerBoundMs`. The log then has each write whose outcome is unknown, and the process must end.
   */
  stopNow(): Promise<void> {
    this.#stopped ??= this.#endAll();
    return this.#stopped;
  }

  async #endAll(): Promise<void> {
    const since = performance.now();
    this.#isDraining = true;
    void this.#endTransactions();
    for (const section of this.#sections) section.keepNothingIdle();
    for (const exchange of [...this.live]) exchange.endNow();
    // Nothing begins any more. A session is given back when what ran on it has ended.
    await Promise.race([this.#closeSections(), pause(killBoundMs)]);
    for (const exchange of [...this.live]) exchange.giveUp();
    const isOver = () => this.#http.inFlight === 0 || performance.now() - since >= answerBoundMs;
    while (!isOver()) await pause(answerCheckMs);
  }

  /** Ends all connections of clients at once: replies of which a part is missing by a reset, which the end of the process would not send. */
  cutConnections(): void {
    this.#http.destroyConnections();
  }

  #endTransactions(): Promise<void> {
    this.#transactionsEnded ??= this.#held.transactions.close();
    return this.#transactionsEnded;
  }

  async #closeSections(): Promise<void> {
    await Promise.all(this.#sections.map((section) => section.close()));
  }

  async #askReady(): Promise<ReadyAnswer> {
    return this.#isDraining ? stopping : askSections(this.#sections);
  }
}

/** The observers of a worker: metrics, recent errors, costs of statements, and the logs. */
class Observers {
  readonly metrics;
  readonly clients: ClientMetrics;
  readonly recentErrors = new RecentErrors();
  readonly statements = new StatementTable();
  readonly #noteInLog: Observe;
  readonly #noteRejectedPages: Observe;
  readonly #accessLog: AccessLog | null;

  constructor(
    { slowQueryMs, mcp }: Config,
    log: Log,
    accessLog: AccessLog | null,
    accounts: Accounts,
  ) {
    this.metrics = new WorkerMetrics(openFilesLimit(), mcp ? sqlTools : []);
    this.clients = new ClientMetrics(accounts);
    this.#noteInLog = createRequestLog(log, slowQueryMs);
    this.#noteRejectedPages = createRejectedPagesLog(log);
    this.#accessLog = accessLog;
  }

  observe(observation: Parameters<Observe>[0]): void {
    this.metrics.observe(observation);
    this.clients.observe(observation);
    this.recentErrors.observe(observation);
    this.statements.observe(observation);
    this.#noteInLog(observation);
    this.#noteRejectedPages(observation);
    this.#accessLog?.observe(observation);
  }
}

/** The descriptions of named statements by the servers that answer for the sections. */
function namedFacts(sections: readonly Section[]): NamedFacts {
  const describe = (name: string) =>
    sections.find(({ config }) => config.section === name)?.leading.catalogue.named;
  return {
    enumValues: (section, table, column) => describe(section)?.valuesOf(table, column) ?? null,
    rowSchema: (section, name) => {
      const answer = describe(section)?.find(name)?.answer ?? null;
      return answer === null ? null : schemaOfRow(answer);
    },
    states: () => sections.map(({ leading }) => leading.catalogue.named.state),
  };
}

/** The supervisor remembers each COMMIT, in case the worker that sent it ends before its answer. */
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

/** The most connections to databases at once: each pool, with its control connection and probe. */
function countConnections(sections: readonly Config[]): number {
  return sections.reduce((sum, { pool }) => sum + pool + 2, 0);
}

/** Gateways that share no file have their tokens in common. */
function driverSecret(
  { sessionKey }: Config,
  { tokens, access }: Pick<Credentials, 'tokens' | 'access'>,
): string {
  const digests = access?.clients.clients.flatMap(({ tokenDigests }) => tokenDigests) ?? [];
  return sessionKey ?? [...tokens, ...digests].join('\n');
}

function createIdentifier(config: Config, supervisor: Caller<SupervisorCalls>): Identifier {
  const { jwtIssuer: issuer, jwtAudience: audience } = config;
  return new Identifier(config, {
    names: issuer === null || audience === null ? null : { issuer, audience },
    rereadKeys: () => supervisor.ask('rereadKeys', null),
  });
}

/** Ready while any of the sections can be served: clients of the others learn it from their replies. */
async function askSections(sections: readonly Section[]): Promise<ReadyAnswer> {
  const answers = await Promise.all(sections.map((section) => section.askReady()));
  const answer = answers.find(({ isReady }) => isReady) ?? (answers[0] as ReadyAnswer);
  const isPlain = sections.every(({ servers }) => servers === null) && sections.length === 1;
  if (isPlain) return answer;
  const entries = sections.map(({ servers: group, config }, at) => {
    const ready = answers[at]?.isReady === true;
    const statuses = group?.topology.statuses;
    const servers = statuses && {
      roles: statuses.map(({ role }) => role),
      reasons: statuses.map(({ reason }) => reason),
      no_primary: group?.topology.none ?? undefined,
    };
    return [config.section, { ready, ...servers }] as const;
  });
  return { ...answer, sections: Object.fromEntries(entries) };
}

/** Reads the console's files into memory. Null, with a line in the log: the build has left none. */
function loadConsoleFiles(log: Log): ConsoleFiles | null {
  const folder = new URL('../console/', import.meta.url);
  try {
    const names = readdirSync(folder).filter(isConsoleFile);
    return new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
  } catch (error) {
    log.warn('there is no console', { reason: (error as Error).message });
    return null;
  }
}

/**
 * Loads the WebAssembly that writes rows, with an arena of so many bytes. Null, with a line in the log: it cannot run on this machine.
 * Rows are then written one by one, which more than doubles the CPU of large results.
 */
function loadRowModule(log: Log, arenaBytes: number): RowModule | null {
  try {
    return new RowModule(readFileSync(new URL('encode/rows.wasm', import.meta.url)), arenaBytes);
  } catch (error) {
    log.warn('rows are written without WebAssembly', { reason: (error as Error).message });
    return null;
  }
}

/** How many bytes of requests a worker keeps that are incomplete, and as many of those that wait to be decoded. */
function maxBufferedBytes({ maxRequestBytes }: Pick<Config, 'maxRequestBytes'>): number {
  return Math.max(minBufferedBytes, 4 * maxRequestBytes);
}

// One section as a worker serves it: its servers, what runs statements on them, and its metrics.
import { performance } from 'node:perf_hooks';
import type { Config } from '../shared/config/config.ts';
import type { Credentials } from '../shared/config/credentials.ts';
import { parseIdempotencyTable } from '../shared/database/idempotency-table.ts';
import type { NamedStatement } from '../shared/named/statement.ts';
import type { Sample } from '../shared/observe/metrics.ts';
import type { ServerVerdict } from '../shared/observe/stats.ts';
import type { Log, LogFields } from '../shared/process/log.ts';
import type { PrimaryMemory } from '../shared/servers/primary-memory.ts';
import { asciiJson } from './encode/json.ts';
import type { RowModule } from './encode/row-module.ts';
import type { SqlContext } from './endpoints/statement.ts';
import type { RunContext } from './execution/execution.ts';
import { Executor } from './execution/executor.ts';
import { KeyStore } from './execution/idempotency/key-store.ts';
import { Purge } from './execution/idempotency/purge.ts';
import { Pipeline } from './execution/pipeline/pipeline.ts';
import { SlowReaders } from './http/slow-readers.ts';
import {
  backendSamples,
  noPrimarySamples,
  SectionMetrics,
  sample,
  statusSamples,
} from './observe/metrics.ts';
import type { Observe } from './observe/observation.ts';
import { Overload } from './observe/overload.ts';
import { createTokens } from './request/consistency-tokens.ts';
import type { ExchangeContext } from './request/exchange.ts';
import type { ReadyAnswer } from './servers/pool/readiness.ts';
import { Server } from './servers/server.ts';
import { type SectionSurroundings, Servers } from './servers/servers.ts';

/** The pipeline takes two connections of the pool. Smaller pools have none. */
const minPoolForPipeline = 4;

/** The parts that a section gets from its worker. */
export type SectionParts = SectionSurroundings &
  Pick<ExchangeContext, 'live' | 'peers' | 'buffers' | 'holdBytes' | 'accounts'> & {
    readonly rowModule: RowModule | null;
    readonly slowQueryMs: number;
    readonly observe: Observe;
  };

/** A section. Its owner starts it, and must close it. */
export class Section {
  readonly config: Config;
  /** The parts that requests for it use. */
  readonly context: SqlContext & ExchangeContext;
  /** Null: there is one server, which has no role. */
  readonly servers: Servers | null;
  /** The parts that runs share on each server, in the order of `host`. */
  readonly #contexts: readonly RunContext[];
  readonly #executor: Executor;
  readonly #purge: Purge | null;
  readonly #metrics: SectionMetrics;
  readonly #overload: Overload;
  #leading: Server;
  #closing: Promise<void> | null = null;

  constructor(config: Config, parts: SectionParts) {
    const { idempotencyTable, idempotencyKeepMs, database, candidates } = config;
    const { log } = parts;
    const table =
      idempotencyTable === null ? null : parseIdempotencyTable(idempotencyTable, database);
    const keys = table === null ? null : new KeyStore(table, log);
    const servers = candidates.length === 1 ? null : new Servers(config, parts);
    const all = servers?.all ?? [new Server(config, candidates[0], parts, null)];
    this.config = config;
    this.servers = servers;
    this.#contexts = all.map((server) => ({
      server,
      address: server.address,
      pool: server.pool,
      reserved: server.reserved,
      control: server.control,
      pipeline: config.pool >= minPoolForPipeline ? new Pipeline(server, log) : null,
      consistency: server.consistency,
    }));
    this.#executor = new Executor(this.#contexts, servers, keys, config.coalesce);
    this.#leading = all[0] as Server;
    const poolOf = () => (this.servers === null ? this.leading.pool : this.servers.primary?.pool);
    this.#purge = table === null ? null : new Purge(poolOf, table, idempotencyKeepMs, log);
    this.#metrics = new SectionMetrics(config.section, parts.slowQueryMs);
    this.#overload = new Overload(log, () => describeLoad(this));
    this.context = this.#createContext(parts);
  }

  #createContext(parts: SectionParts): Section['context'] {
    const { live, peers, buffers, holdBytes, rowModule, observe, log } = parts;
    const { section, sessionKey, transactionIdleTimeoutMs, transactionTimeoutMs } = this.config;
    const key = sessionKey === null ? null : Buffer.from(sessionKey, 'base64');
    const onGivenUp = (count: number) => {
      this.#metrics.readersGivenUp += count;
    };
    return {
      home: {
        section,
        executor: this.#executor,
        times: { idleMs: transactionIdleTimeoutMs, totalMs: transactionTimeoutMs },
        onEnd: (end) => this.#metrics.transactionEnded(end),
      },
      executor: this.#executor,
      tokens: this.servers === null ? null : createTokens(key),
      catalogue: () => this.leading.catalogue,
      live,
      peers,
      section,
      buffers,
      rowModule,
      sectionJson: asciiJson(section),
      holdBytes,
      accounts: parts.accounts,
      retryAfterSeconds: (account) => this.leading.pool.retryAfterSeconds(account),
      maxStatementBytes: () => this.leading.maxStatementBytes,
      slowReaders: createSlowReaders(this.all, onGivenUp, log),
      observe: (observation) => {
        if (observation.kind === 'statements finished') {
          this.#metrics.count(observation.summary);
          const { code, client } = observation.summary;
          this.#overload.observe(code, client, performance.now());
        }
        observe(observation);
      },
    };
  }

  /** In the order of `host`. */
  get all(): readonly Server[] {
    return this.#contexts.map(({ server }) => server);
  }

  start(): void {
    for (const server of this.all) server.start();
    this.servers?.start();
    this.#purge?.start();
  }

  /** The server that answers for the section: the primary, or the last one. */
  get leading(): Server {
    this.#leading = this.servers?.primary ?? this.#leading;
    return this.#leading;
  }

  /** The latest answer to whether the section can be served. */
  get #readiness(): ReadyAnswer {
    return this.servers?.readiness ?? this.leading.readiness.answer;
  }

  /** Resolves with whether the section can be served; never rejects, never takes longer than a second. */
  async askReady(): Promise<ReadyAnswer> {
    return this.servers?.readiness ?? this.leading.readiness.ask();
  }

  /** A statement through another worker may have changed tables. */
  tablesChanged(): void {
    for (const { catalogue } of this.all) catalogue.outdate();
  }

  /** Has every server asked about these named statements, and about no others. */
  useNamed(statements: readonly NamedStatement[]): void {
    for (const { catalogue } of this.all) catalogue.useNamed(statements);
  }

  /** All workers remember this of its primary from now on. */
  rememberPrimary(memory: PrimaryMemory): void {
    this.servers?.topology.remember(memory);
  }

  renew(credentials: Credentials): void {
    for (const server of this.all) server.renew(credentials);
  }

  /** Closes idle connections from now on. */
  keepNothingIdle(): void {
    this.#purge?.close();
    for (const { server, pipeline } of this.#contexts) {
      server.keepNothingIdle();
      pipeline?.close();
    }
  }

  /** Closes what is idle, and resolves when nothing is open any more. Idempotent. */
  close(): Promise<void> {
    this.#overload.end();
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.servers?.close();
    await Promise.all(this.all.map((server) => server.close()));
  }

  /** Its metrics. @param isStopping the worker stops, so that the section is not ready */
  snapshot(isStopping: boolean) {
    const readiness = isStopping ? stopping : this.#readiness;
    const name = this.config.section;
    const backends = this.#contexts.flatMap(({ server, pipeline }) =>
      backendSamples(name, server.observations(), pipeline?.observations()),
    );
    return {
      samples: [
        ...this.#metrics.samples(readiness, this.#executor.coalesced),
        ...backends,
        ...this.#statuses(),
      ],
      histograms: this.#metrics.histograms(),
    };
  }

  /** The role of each of several servers, and why; nothing if there is one. */
  verdicts(): readonly ServerVerdict[] {
    const { servers, config, all } = this;
    if (servers === null) return [];
    return all.map(({ address }, at) => {
      const { role, reason } = servers.topology.statusOf(at);
      return { section: config.section, backend: address, role, reason };
    });
  }

  /** The roles of several servers as metrics; nothing if there is one. */
  #statuses(): readonly Sample[] {
    const { servers, config, all } = this;
    const { section } = config;
    if (servers === null) return [];
    return [
      sample('dbhttpd_two_primaries', servers.isContested ? 1 : 0, { section }),
      ...noPrimarySamples(section, servers.topology.none),
      ...all.flatMap(({ address }, at) =>
        statusSamples(section, address, servers.topology.statusOf(at)),
      ),
    ];
  }
}

/** The load, for the log line about rejected requests. */
function describeLoad({ config, all: servers }: Section): LogFields {
  const loads = servers.map(({ pool }) => pool.observations());
  const sum = (of: 'waiting' | 'busy' | 'size') => loads.reduce((all, load) => all + load[of], 0);
  const { section } = config;
  return { section, waiting: sum('waiting'), busy: sum('busy'), pool: sum('size') };
}

/** The answer to whether it is ready while the gateway stops. */
export const stopping = { isReady: false, code: 'STOPPING', errno: null } as const;

/** How often at most the log reports readers that were given up. */
const stalledLogMs = 10_000;

/** Slow readers and transactions that clients hold keep at most half of a pool from requests that wait. */
function createSlowReaders(
  servers: readonly Server[],
  onGivenUp: (count: number) => void,
  log: Log,
): SlowReaders {
  let lastLogged = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return new SlowReaders({
    othersWait: () => servers.some(({ pool }) => pool.isShort),
    maxSessions: () => Math.max(0, Math.min(...servers.map(({ reserved }) => reserved.room))),
    onGivenUp: (count) => {
      onGivenUp(count);
      unlogged += count;
      const now = performance.now();
      if (now - lastLogged < stalledLogMs) return;
      log.warn('slow readers held connections while requests waited', {
        reset: unlogged,
        pool: servers[0]?.pool.size ?? 0,
      });
      lastLogged = now;
      unlogged = 0;
    },
  });
}

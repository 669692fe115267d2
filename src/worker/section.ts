// One section as a worker serves it: its servers, and what runs statements on them.
import type { Config } from '../shared/config/config.ts';
import type { Credentials } from '../shared/config/credentials.ts';
import { parseLedgerTable } from '../shared/idempotency-table.ts';
import type { PrimaryMemory } from '../shared/servers/primary-memory.ts';
import type { RunContext } from './execution/execution.ts';
import { Executor } from './execution/executor.ts';
import { Ledger } from './execution/idempotency/ledger.ts';
import { Purge } from './execution/idempotency/purge.ts';
import { Pipeline } from './execution/pipeline/pipeline.ts';
import type { ReadyAnswer } from './servers/pool/readiness.ts';
import { Server } from './servers/server.ts';
import { type SectionSurroundings, Servers } from './servers/servers.ts';

/** The pipeline takes two connections of the pool. Smaller pools have none. */
const minPoolForPipeline = 4;

/** A section. Its owner starts it, and must close it. */
export class Section {
  readonly config: Config;
  /** What runs share on each server, in the order of `host`. */
  readonly contexts: readonly RunContext[];
  readonly executor: Executor;
  /** Null: there is one server, which has no role. */
  readonly servers: Servers | null;
  readonly #purge: Purge | null;
  #leading: Server;

  constructor(config: Config, surroundings: SectionSurroundings) {
    const { idempotencyTable, idempotencyKeepMs, database, candidates } = config;
    const { log } = surroundings;
    const table = idempotencyTable === null ? null : parseLedgerTable(idempotencyTable, database);
    const ledger = table === null ? null : new Ledger(table, log);
    const servers = candidates.length === 1 ? null : new Servers(config, surroundings);
    const all = servers?.all ?? [new Server(config, candidates[0], surroundings, null)];
    this.config = config;
    this.servers = servers;
    this.contexts = all.map((server) => ({
      server,
      address: server.address,
      pool: server.pool,
      reserved: server.reserved,
      control: server.control,
      pipeline: config.pool >= minPoolForPipeline ? new Pipeline(server, log) : null,
      consistency: server.consistency,
    }));
    this.executor = new Executor(this.contexts, servers, ledger, config.coalesce);
    this.#leading = all[0] as Server;
    const poolOf = () => (this.servers === null ? this.leading.pool : this.servers.primary?.pool);
    this.#purge = table === null ? null : new Purge(poolOf, table, idempotencyKeepMs, log);
  }

  /** In the order of `host`. */
  get all(): readonly Server[] {
    return this.contexts.map(({ server }) => server);
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

  /** Requests that were answered by the execution of another one. */
  get coalesced(): number {
    return this.executor.coalesced;
  }

  /** The latest answer to whether the section can be served. */
  get readiness(): ReadyAnswer {
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

  /** All workers remember this of its primary from now on. */
  rememberPrimary(memory: PrimaryMemory): void {
    this.servers?.rememberPrimary(memory);
  }

  renew(credentials: Credentials): void {
    for (const server of this.all) server.renew(credentials);
  }

  /** From now on idle connections are closed. */
  keepNothingIdle(): void {
    this.#purge?.close();
    for (const { server, pipeline } of this.contexts) {
      server.keepNothingIdle();
      pipeline?.close();
    }
  }

  /** Closes what is idle, and resolves when nothing is open any more. */
  async close(): Promise<void> {
    this.servers?.close();
    await Promise.all(this.all.map((server) => server.close()));
  }
}

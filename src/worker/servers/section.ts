// One section as a worker serves it: its servers, its idempotency keys, and the executor over both.
// Must not know the other sections, nor HTTP.

import type { Config } from '../../shared/config/config.ts';
import type { Credentials } from '../../shared/config/credentials.ts';
import { parseLedgerTable } from '../../shared/idempotency-table.ts';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import { Coalescer } from '../execution/coalescer.ts';
import { Executor } from '../execution/executor.ts';
import { Ledger } from '../execution/idempotency/ledger.ts';
import { Purge } from '../execution/idempotency/purge.ts';
import { type Launcher, launchAmong, launchOn } from '../execution/launcher.ts';
import type { Run } from '../execution/run.ts';
import type { RunContext } from '../execution/run-context.ts';
import type { Sharing } from '../execution/sharing.ts';
import { Backend } from './backend.ts';
import type { ReadyAnswer } from './pool/readiness.ts';
import { type SectionSurroundings, Servers } from './servers.ts';

/** A section. Its owner starts it, and must close it. */
export class Section {
  readonly config: Config;
  readonly backends: readonly Backend[];
  readonly executor: Executor;
  /** Has what is no statement by itself run where that may be. */
  readonly launcher: Launcher;
  /** Null: it has one server, whose part nobody asks for. */
  readonly servers: Servers | null;
  /** One of each server: what waits at one is not for another one's requests. */
  readonly #coalescers: Coalescer<Sharing<Run>>[] = [];
  readonly #purge: Purge | null;
  #leading: Backend;

  constructor(config: Config, surroundings: SectionSurroundings) {
    const { idempotencyTable, idempotencyKeepMs, database, candidates } = config;
    const { log } = surroundings;
    const table = idempotencyTable === null ? null : parseLedgerTable(idempotencyTable, database);
    const ledger = table === null ? null : new Ledger(table, log);
    const contextOf = (backend: Backend): RunContext => ({
      address: backend.address,
      pool: backend.pool,
      share: backend.share,
      control: backend.control,
      pipeline: backend.pipeline,
      coalescer: config.coalesce ? this.#addCoalescer() : null,
      consistency: backend.consistency,
    });
    this.config = config;
    if (candidates.length === 1) {
      const backend = new Backend(config, candidates[0], surroundings, null);
      this.servers = null;
      this.backends = [backend];
      this.launcher = launchOn(contextOf(backend));
    } else {
      this.servers = new Servers(config, surroundings, contextOf);
      this.backends = this.servers.backends;
      this.launcher = launchAmong(this.servers);
    }
    this.executor = new Executor(this.launcher, ledger);
    this.#leading = this.backends[0] as Backend;
    const poolOf = () => (this.servers === null ? this.leading.pool : this.servers.primary?.pool);
    this.#purge = table === null ? null : new Purge(poolOf, table, idempotencyKeepMs, log);
  }

  #addCoalescer(): Coalescer<Sharing<Run>> {
    const coalescer = new Coalescer<Sharing<Run>>();
    this.#coalescers.push(coalescer);
    return coalescer;
  }

  start(): void {
    for (const backend of this.backends) backend.start();
    this.servers?.start();
    this.#purge?.start();
  }

  /** Whose word counts where one must be asked: who takes writes, or did last. */
  get leading(): Backend {
    this.#leading = this.servers?.primary ?? this.#leading;
    return this.#leading;
  }

  /** Requests that were answered by the execution of another one. */
  get coalesced(): number {
    return this.#coalescers.reduce((sum, { coalesced }) => sum + coalesced, 0);
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
    for (const { catalogue } of this.backends) catalogue.outdate();
  }

  /** All workers remember this of its primary from now on. */
  rememberPrimary(memory: PrimaryMemory): void {
    this.servers?.rememberPrimary(memory);
  }

  renew(credentials: Credentials): void {
    for (const backend of this.backends) backend.renew(credentials);
  }

  /** From now on nothing is kept open that nobody uses. */
  keepNothingIdle(): void {
    this.#purge?.close();
    for (const backend of this.backends) backend.keepNothingIdle();
  }

  /** Closes what is idle, and resolves when nothing is open any more. */
  async close(): Promise<void> {
    this.servers?.close();
    await Promise.all(this.backends.map((backend) => backend.close()));
  }
}

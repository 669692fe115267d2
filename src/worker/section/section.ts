// One section as a worker serves it: its backends, its idempotency keys, and the executor over both.
// Must not know the other sections, nor HTTP.
import { parseLedgerTable } from '../../shared/ledger/ledger-table.ts';
import type { Config } from '../../shared/settings/config.ts';
import type { Credentials } from '../../shared/settings/credentials.ts';
import type { ReadyAnswer } from '../backend/readiness.ts';
import { Coalescer } from '../execute/coalescer.ts';
import { Executor } from '../execute/executor.ts';
import type { Run } from '../execute/run.ts';
import { Ledger } from '../ledger/ledger.ts';
import { Purge } from '../ledger/purge.ts';
import { Backend, type BackendSurroundings } from './backend.ts';

/** A section. Its owner starts it, and must close it. */
export class Section {
  readonly config: Config;
  readonly backends: readonly Backend[];
  readonly executor: Executor;
  /** Whose word counts where one must be asked. */
  readonly leading: Backend;
  readonly #coalescer: Coalescer<Run> | null;
  readonly #purge: Purge | null;

  constructor(config: Config, surroundings: BackendSurroundings) {
    const { idempotencyTable, idempotencyKeepMs, database } = config;
    const { log } = surroundings;
    const table = idempotencyTable === null ? null : parseLedgerTable(idempotencyTable, database);
    const ledger = table === null ? null : new Ledger(table, log);
    this.config = config;
    const backend = new Backend(config, surroundings);
    this.backends = [backend];
    this.leading = backend;
    this.#coalescer = config.coalesce ? new Coalescer<Run>() : null;
    const { pool, control, pipeline } = backend;
    this.executor = new Executor({ pool, control, pipeline, coalescer: this.#coalescer, ledger });
    this.#purge = table === null ? null : new Purge(pool, table, idempotencyKeepMs, log);
  }

  start(): void {
    for (const backend of this.backends) backend.start();
    this.#purge?.start();
  }

  /** Requests that were answered by the execution of another one. */
  get coalesced(): number {
    return this.#coalescer?.coalesced ?? 0;
  }

  /** The latest answer to whether the section can be served. */
  get readiness(): ReadyAnswer {
    return this.leading.readiness.answer;
  }

  /** Resolves with whether the section can be served; never rejects, never takes longer than a second. */
  askReady(): Promise<ReadyAnswer> {
    return this.leading.readiness.ask();
  }

  /** A statement through another worker may have changed tables. */
  tablesChanged(): void {
    for (const { catalogue } of this.backends) catalogue.outdate();
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
    await Promise.all(this.backends.map((backend) => backend.close()));
  }
}

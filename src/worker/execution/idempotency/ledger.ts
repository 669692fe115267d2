// What a worker knows of the table of idempotency keys: whether it can be used, and whose turn it is with a key.
// Must not know requests, nor how their statements are run.
import { performance } from 'node:perf_hooks';
import {
  fetchEngine,
  findTableFaults,
  type LedgerTable,
  rightEngine,
} from '../../../shared/idempotency-table.ts';
import type { Log } from '../../../shared/process/log.ts';
import type { Session } from '../../servers/pool/session.ts';
import { KeyTurns } from './key-turns.ts';

/** A table that was found good is believed to be for so long. */
const believedMs = 60_000;
/** Faults are told in the log so often at most. */
const tellMs = 10_000;

/** One worker's view of the table. */
export class Ledger {
  readonly table: LedgerTable;
  readonly turns = new KeyTurns();
  readonly #log: Log;
  #goodUntil = Number.NEGATIVE_INFINITY;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(table: LedgerTable, log: Log) {
    this.table = table;
    this.#log = log;
  }

  /**
   * Whether the table is what it must be; asked on a session outside of any transaction. Rejects when the connection is lost. Its engine is
   * asked for each time: the server says nothing of its own accord when a key is written outside of the transaction.
   */
  async isUsable({ connection }: Session): Promise<boolean> {
    const now = performance.now();
    const isBelieved = now < this.#goodUntil;
    if (isBelieved && (await fetchEngine(connection, this.table)) === rightEngine) return true;
    this.#goodUntil = Number.NEGATIVE_INFINITY;
    const faults = await findTableFaults(connection, this.table);
    if (faults.length === 0) this.#goodUntil = now + believedMs;
    else this.#tell(faults.join('; '));
    return faults.length === 0;
  }

  /** The server refused to take a key, for a reason that lies in the table or its grants. */
  refused(errno: number): void {
    this.#goodUntil = Number.NEGATIVE_INFINITY;
    this.#tell(`the server refuses to write to it, errno ${errno}`);
  }

  #tell(reason: string): void {
    const now = performance.now();
    if (now - this.#toldAt < tellMs) return;
    this.#toldAt = now;
    this.#log.error('idempotency_table cannot be used', { reason });
  }
}

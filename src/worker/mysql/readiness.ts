// Whether the database can serve what a client needs, asked on a connection of its own.
// Must not know HTTP; has nothing to do with the pool, so that a busy pool is ready.
import { performance } from 'node:perf_hooks';
import { fetchRows } from './commands.ts';
import type { Connection } from './connection.ts';

const cacheMs = 1_000;
const probeTimeoutMs = 1_000;
/** A Galera node answers `select 1` while it cannot read a table. Other servers have wsrep_on off, or none. */
const galeraSql = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'";
const galeraReadySql = "SHOW GLOBAL STATUS LIKE 'wsrep_ready'";

/** Asks the database, at most once in a second. Its owner must close it. */
export class Readiness {
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  #probe: Promise<boolean> | null = null;
  #answer = false;
  #answeredAt = Number.NEGATIVE_INFINITY;

  constructor(connect: (signal: AbortSignal) => Promise<Connection>) {
    this.#connect = connect;
  }

  /** Resolves with whether the database serves; never rejects, never takes longer than a second. */
  isReady(): Promise<boolean> {
    if (performance.now() - this.#answeredAt < cacheMs) return Promise.resolve(this.#answer);
    this.#probe ??= this.#ask().then((answer) => {
      this.#answer = answer;
      this.#answeredAt = performance.now();
      this.#probe = null;
      return answer;
    });
    return this.#probe;
  }

  close(): void {
    this.#closing.abort(new Error('the probe is closing'));
    this.#drop();
  }

  async #ask(): Promise<boolean> {
    const timeout = setTimeout(() => this.#drop(), probeTimeoutMs);
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(probeTimeoutMs)]);
    try {
      if (this.#connection === null || this.#connection.isLost) {
        this.#connection = await this.#connect(signal);
      }
      const [galera, ready] = await Promise.all([
        fetchRows(this.#connection, galeraSql),
        fetchRows(this.#connection, galeraReadySql),
      ]);
      return !isOn(galera) || isOn(ready);
    } catch {
      this.#drop();
      return false;
    } finally {
      clearTimeout(timeout);
    }
  }

  #drop(): void {
    this.#connection?.destroy(new Error('the probe was given up'));
    this.#connection = null;
  }
}

function isOn(rows: readonly (readonly (string | null)[])[]): boolean {
  return rows[0]?.[1] === 'ON';
}

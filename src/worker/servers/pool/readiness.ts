// Whether a server can serve requests, asked on a connection of its own, or on an idle session of the pool. It never waits for a session: a
// busy pool is ready.
import { performance } from 'node:perf_hooks';
import { connectFailures, type UnreadyCode } from '../../../shared/failure-codes.ts';
import { fetchRows } from '../../../shared/mysql/commands.ts';
import {
  type ConnectFailure,
  describeConnectFailure,
} from '../../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { Log } from '../../../shared/process/log.ts';
import { prepare, whyAborted, within } from './connecting.ts';
import type { Pool } from './pool.ts';

const cacheMs = 1_000;
const probeTimeoutMs = 1_000;
/** Leaves time to ask on a session of the pool, if the probe cannot connect because DNS is silent. */
const connectTimeoutMs = 700;
/** A Galera node answers `select 1` while it cannot read a table. Other servers have wsrep_on off, or none. */
const galeraSql = "SHOW GLOBAL VARIABLES LIKE 'wsrep_on'";
const galeraReadySql = "SHOW GLOBAL STATUS LIKE 'wsrep_ready'";
/** ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED. */
const limitErrors: ReadonlySet<number | null> = new Set([1040, 1203, 1226]);

/** Whether the server serves, or why it does not; `errno` is the server's own number; null: it gave none. */
export type ReadyAnswer =
  | { readonly isReady: true }
  | { readonly isReady: false; readonly code: UnreadyCode; readonly errno: number | null };

/** With these a new connection fails, and the open ones still serve. */
const spareOpen: ReadonlySet<ConnectFailure['kind']> = new Set([
  'login refused',
  'server unavailable',
  'name unresolved',
]);

const ready: ReadyAnswer = { isReady: true };

/** The parts of the pool that the probe uses. */
type ProbedPool = Pick<Pool, 'open' | 'borrowIdle' | 'release' | 'revive' | 'connectFailure'>;

/** Asks the server, at most once in a second. Its owner must close it. */
export class Readiness {
  /** The latest answer. */
  answer: ReadyAnswer = { isReady: false, code: 'STARTING', errno: null };
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #pool: ProbedPool;
  readonly #onReached: () => void;
  readonly #log: Log;
  readonly #closing = new AbortController();
  #connection: Connection | null = null;
  #probe: Promise<ReadyAnswer> | null = null;
  #answeredAt = Number.NEGATIVE_INFINITY;

  /** @param onReached called when the server has taken a new connection */
  constructor(
    connect: (signal: AbortSignal) => Promise<Connection>,
    pool: ProbedPool,
    onReached: () => void,
    log: Log,
  ) {
    this.#connect = connect;
    this.#pool = pool;
    this.#onReached = onReached;
    this.#log = log;
  }

  /** Resolves with whether the server serves; never rejects, never takes longer than a second. */
  ask(): Promise<ReadyAnswer> {
    if (performance.now() - this.#answeredAt < cacheMs) return Promise.resolve(this.answer);
    const ask = (signal: AbortSignal) => this.#ask(signal);
    this.#probe ??= within(this.#closing.signal, probeTimeoutMs, 'no answer', ask)
      .catch((error) => unready(describeConnectFailure(error)))
      .then((answer) => this.#note(answer));
    return this.#probe;
  }

  #note(answer: ReadyAnswer): ReadyAnswer {
    const [from, to] = [codeOf(this.answer), codeOf(answer)];
    if (to !== from) this.#log.debug?.('readiness changed', { from, to });
    this.answer = answer;
    this.#answeredAt = performance.now();
    this.#probe = null;
    return answer;
  }

  /** From here on it is not ready: the gateway stops. */
  close(): void {
    this.#closing.abort(new Error('the probe is closing'));
    this.#drop();
  }

  async #ask(signal: AbortSignal): Promise<ReadyAnswer> {
    const poolFailure = await this.#revivePool(signal);
    // If no request gets a session, it does not help that the probe has a connection.
    if (poolFailure !== null) return unready(poolFailure);
    const own = await this.#askOnOwn(signal);
    return 'isReady' in own ? own : this.#askOnBorrowed(own, signal);
  }

  async #revivePool(signal: AbortSignal): Promise<ConnectFailure | null> {
    const failure = await this.#revive(signal);
    if (!limitErrors.has(failure?.errno ?? null) || this.#connection === null) return failure;
    // The server's limit is reached, perhaps by the probe's own connection: the pool needs it more.
    this.#drop();
    return this.#revive(signal);
  }

  async #revive(signal: AbortSignal): Promise<ConnectFailure | null> {
    try {
      return await raceAbort(this.#pool.revive(), signal);
    } catch (error) {
      // The attempt goes on without an answer. If DNS gave none before, it is still DNS.
      const before = this.#pool.connectFailure;
      if (before?.kind === 'name unresolved') return before;
      throw error;
    }
  }

  async #askOnOwn(signal: AbortSignal): Promise<ReadyAnswer | ConnectFailure> {
    try {
      if (this.#connection === null || this.#connection.isLost) {
        this.#connection = await within(signal, connectTimeoutMs, 'no answer', this.#connect);
        this.#onReached();
      }
      return await askServer(this.#connection, signal);
    } catch (error) {
      this.#drop();
      return describeConnectFailure(signal.aborted ? whyAborted(signal, error) : error);
    }
  }

  async #askOnBorrowed(own: ConnectFailure, signal: AbortSignal): Promise<ReadyAnswer> {
    if (signal.aborted || own.kind === 'server silent') return unready(own);
    const session = this.#pool.borrowIdle();
    if (session === null) {
      return spareOpen.has(own.kind) && this.#pool.open > 0 ? ready : unready(own);
    }
    try {
      const answer = await askServer(session.connection, signal);
      this.#pool.release(session, 'unclean');
      return answer;
    } catch {
      this.#pool.release(session, 'broken');
      return unready(own);
    }
  }

  #drop(): void {
    this.#connection?.destroy(new Error('the probe was given up'));
    this.#connection = null;
  }
}

/** Rejects if the connection is lost, or `signal` is aborted, which destroys it. */
async function askServer(connection: Connection, signal: AbortSignal): Promise<ReadyAnswer> {
  const [galera, galeraReady] = await prepare(connection, signal, () =>
    Promise.all([fetchRows(connection, galeraSql), fetchRows(connection, galeraReadySql)]),
  );
  return !isOn(galera) || isOn(galeraReady)
    ? ready
    : { isReady: false, code: 'GALERA_NOT_READY', errno: null };
}

function raceAbort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function unready({ kind, errno }: ConnectFailure): ReadyAnswer {
  return { isReady: false, code: connectFailures[kind].unready, errno };
}

function codeOf(answer: ReadyAnswer): string {
  return answer.isReady ? 'READY' : answer.code;
}

function isOn(rows: readonly (readonly (string | null)[])[]): boolean {
  return rows[0]?.[1] === 'ON';
}

// The worker's sessions and the bounded queue in front of them.
// Must not know what a statement is, nor HTTP.
import type { Log } from '../../shared/log.ts';
import { Backoff } from './backoff.ts';
import { quit, RefusedError } from './commands.ts';
import type { Session } from './session.ts';

/** Why a request did not get a session; its statement never reached MySQL. */
export type Refusal = 'queue full' | 'database unreachable' | 'stopping';

/** Somebody who wants a session. Exactly one of the two is called, once, unless withdrawn. */
export interface Waiter {
  /** The session is the waiter's until it is released. */
  granted(session: Session): void;
  refused(reason: Refusal): void;
}

/** What the user of a session says about it: an `unclean` one is reset before it is lent again. */
export type Verdict = 'clean' | 'unclean' | 'broken';

export type PoolSettings = {
  readonly size: number;
  readonly queue: number;
  /** Opens a connection and prepares its session. */
  readonly open: (signal: AbortSignal) => Promise<Session>;
};

/** What the pool holds now, and what it has done so far. */
export type PoolObservations = {
  readonly idle: number;
  readonly busy: number;
  readonly resetting: number;
  readonly connecting: number;
  readonly waiting: number;
  readonly connectsOk: number;
  readonly connectsFailed: number;
  readonly resetsOk: number;
  readonly resetsFailed: number;
};

const resetTimeoutMs = 5_000;

/** A bounded pool. Sessions are opened when they are needed and then kept. */
export class Pool {
  readonly #settings: PoolSettings;
  readonly #log: Log;
  readonly #idle: Session[] = [];
  readonly #busy = new Set<Session>();
  readonly #resetting = new Set<Session>();
  readonly #waiting = new Set<Waiter>();
  readonly #closing = new AbortController();
  readonly #backoff = new Backoff();
  readonly #done = { connectsOk: 0, connectsFailed: 0, resetsOk: 0, resetsFailed: 0 };
  #connecting = 0;
  #retryTimer: NodeJS.Timeout | null = null;
  #onEmpty: (() => void) | null = null;

  constructor(settings: PoolSettings, log: Log) {
    this.#settings = settings;
    this.#log = log;
  }

  observations(): PoolObservations {
    return {
      idle: this.#idle.length,
      busy: this.#busy.size,
      resetting: this.#resetting.size,
      connecting: this.#connecting,
      waiting: this.#waiting.size,
      ...this.#done,
    };
  }

  /** Asks for a session: granted at once, queued, or refused at once. */
  request(waiter: Waiter): void {
    if (this.#closing.signal.aborted) {
      waiter.refused('stopping');
      return;
    }
    const session = this.#waiting.size === 0 ? this.#idle.pop() : undefined;
    if (session !== undefined) {
      this.#grant(session, waiter);
    } else if (this.#isDown()) {
      waiter.refused('database unreachable');
    } else {
      this.#waiting.add(waiter);
      this.#openWhereNeeded();
      if (this.#waiting.size <= this.#settings.queue + this.#connecting) return;
      this.#waiting.delete(waiter);
      waiter.refused('queue full');
    }
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(waiter: Waiter): void {
    this.#waiting.delete(waiter);
  }

  /**
   * Takes a session back. Whoever was granted it must call this once.
   * @param resetWithinMs the time that a reset may take; after it the connection is destroyed
   */
  release(session: Session, verdict: Verdict, resetWithinMs = resetTimeoutMs): void {
    if (!this.#busy.delete(session)) return;
    if (verdict === 'broken') session.connection.destroy(new Error('the connection was given up'));
    if (session.connection.isLost) this.#afterLoss();
    else if (verdict === 'clean') this.#lend(session);
    else this.#reset(session, resetWithinMs);
  }

  /** Refuses who waits, closes what is idle, and resolves when nothing is open any more. */
  close(): Promise<void> {
    this.#closing.abort(new Error('the pool is closing'));
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#refuseAll('stopping');
    for (const { connection } of this.#idle.splice(0)) quit(connection);
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#tellIfEmpty();
    });
  }

  #open(): number {
    return this.#idle.length + this.#busy.size + this.#resetting.size;
  }

  /** Nothing is open, and the last attempt failed: waiting would be for nothing. */
  #isDown(): boolean {
    return this.#retryTimer !== null && this.#open() === 0;
  }

  #refuseAll(reason: Refusal): void {
    for (const waiter of this.#waiting) {
      this.#waiting.delete(waiter);
      waiter.refused(reason);
    }
  }

  #openWhereNeeded(): void {
    if (this.#retryTimer !== null) return;
    while (
      this.#waiting.size > this.#connecting &&
      this.#open() + this.#connecting < this.#settings.size
    ) {
      void this.#connect();
    }
  }

  async #connect(): Promise<void> {
    this.#connecting += 1;
    let session: Session;
    try {
      session = await this.#settings.open(this.#closing.signal);
    } catch (error) {
      this.#connecting -= 1;
      this.#connectFailed(error);
      return;
    }
    this.#connecting -= 1;
    this.#done.connectsOk += 1;
    this.#backoff.succeeded();
    session.connection.watch(() => this.#lost(session));
    this.#lend(session);
    this.#openWhereNeeded();
  }

  #connectFailed(error: unknown): void {
    if (this.#closing.signal.aborted) {
      this.#tellIfEmpty();
      return;
    }
    this.#done.connectsFailed += 1;
    this.#log.warn('cannot connect to the database', {
      attempt: this.#backoff.failures + 1,
      error: errorCode(error),
    });
    this.#retryTimer ??= setTimeout(() => this.#retry(), this.#backoff.failed());
    if (this.#open() === 0) this.#refuseAll('database unreachable');
  }

  /** Tries again without a request's help, so that service returns by itself. */
  #retry(): void {
    this.#retryTimer = null;
    if (this.#open() + this.#connecting < this.#settings.size) void this.#connect();
    this.#openWhereNeeded();
  }

  #grant(session: Session, waiter: Waiter): void {
    this.#busy.add(session);
    waiter.granted(session);
  }

  #lend(session: Session): void {
    if (this.#closing.signal.aborted) {
      quit(session.connection);
      this.#tellIfEmpty();
      return;
    }
    if (this.#waiting.size === 0) {
      this.#idle.push(session);
      return;
    }
    const [waiter] = this.#waiting as Iterable<Waiter> as [Waiter];
    this.#waiting.delete(waiter);
    this.#grant(session, waiter);
  }

  #reset(session: Session, withinMs: number): void {
    this.#resetting.add(session);
    const { connection } = session;
    const timer = setTimeout(
      () => connection.destroy(new Error('the session reset took too long')),
      withinMs,
    );
    session
      .reset()
      .then(
        () => {
          this.#done.resetsOk += 1;
          if (this.#resetting.delete(session)) this.#lend(session);
        },
        (cause: unknown) => {
          this.#done.resetsFailed += 1;
          connection.destroy(new Error('the session could not be reset', { cause }));
        },
      )
      .finally(() => clearTimeout(timer));
  }

  #lost(session: Session): void {
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
    if (at >= 0 || this.#resetting.delete(session)) this.#afterLoss();
  }

  #afterLoss(): void {
    if (this.#closing.signal.aborted) this.#tellIfEmpty();
    else this.#openWhereNeeded();
  }

  #tellIfEmpty(): void {
    if (this.#open() + this.#connecting === 0) this.#onEmpty?.();
  }
}

/** A code only: messages of connect errors name hosts and users. */
function errorCode(error: unknown): string {
  if (error instanceof RefusedError) return String(error.errno);
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.name : 'unknown';
}

// Opens the pool's sessions: how many at once, and when to try again after a failure.
import { performance } from 'node:perf_hooks';
import type { ConnectFailureKind } from '../../../shared/failure-codes.ts';
import type { ConnectFailure } from '../../../shared/mysql/connect-failure.ts';
import type { Log } from '../../../shared/process/log.ts';
import { Attempt, Backoff } from './connecting.ts';
import type { Reachability, Reconnecting } from './reachability.ts';
import type { Session } from './session.ts';

/** The pool's reactions to new sessions. */
export interface SessionEvents {
  /** @param since when its connection began to be opened (performance.now) */
  opened(session: Session, since: number): void;
  /** An attempt failed, and another will be made after a delay: `retry` is called then. */
  failed(): void;
  retry(): void;
}

/** A waiting request brings the next attempt forward, but not closer to the last one than this, or twice this. */
const minPauseMs = 500;

/** Opens sessions on request. After a failed attempt it opens one at a time, so that it does not storm a server that comes back. */
export class SessionSource implements Reconnecting {
  readonly done = { connectsOk: 0, connectsFailed: 0 };
  /** Why the last attempt failed; null: it did not, or there was none. */
  failure: ConnectFailure | null = null;
  readonly #open: (signal: AbortSignal) => Promise<Session>;
  readonly #events: SessionEvents;
  readonly #reachability: Reachability;
  readonly #log: Log;
  readonly #attempts = new Set<Attempt>();
  readonly #backoff = new Backoff();
  #retryTimer: NodeJS.Timeout | null = null;
  #mayHurryAt = 0;
  #latest: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(
    open: (signal: AbortSignal) => Promise<Session>,
    events: SessionEvents,
    reachability: Reachability,
    log: Log,
  ) {
    this.#open = open;
    this.#events = events;
    this.#reachability = reachability;
    this.#log = log;
    reachability.join('pool', this);
  }

  /** How many sessions are being opened. */
  get connecting(): number {
    return this.#attempts.size;
  }

  /** The last attempt failed, and the next is not due yet. */
  get isPausing(): boolean {
    return this.#retryTimer !== null;
  }

  /** Whether a further session may be opened now. */
  get mayConnect(): boolean {
    if (this.isPausing || this.#isClosed) return false;
    return this.#backoff.failures === 0 || this.connecting === 0;
  }

  /** Why there is no session, for those who wait for one. */
  get failureKind(): ConnectFailureKind {
    return this.failure?.kind ?? 'server unreachable';
  }

  /** Resolves when the latest attempt has ended, whether it failed or not. */
  get attempt(): Promise<void> {
    return this.#latest;
  }

  connect(): void {
    const attempt = new Attempt();
    const from = performance.now();
    this.#attempts.add(attempt);
    this.#latest = attempt.open(this.#open).then(
      (session) => {
        if (this.#attempts.delete(attempt)) this.#opened(session, from);
        else session.connection.destroy(new Error('its attempt was given up'));
      },
      (error: unknown) => {
        if (this.#attempts.delete(attempt)) this.#failed(error);
      },
    );
  }

  #opened(session: Session, from: number): void {
    this.done.connectsOk += 1;
    this.failure = null;
    this.#backoff.succeeded();
    this.#reachability.succeeded('pool');
    this.#log.debug?.('a session was opened', {
      connection: session.connection.threadId,
      took_ms: Math.round(performance.now() - from),
    });
    this.#events.opened(session, from);
  }

  /** A request waits: ends the pause if it has lasted long enough. Returns whether there is none. */
  hurry(): boolean {
    if (this.#retryTimer === null) return true;
    if (performance.now() < this.#mayHurryAt) return false;
    this.#endPause();
    return true;
  }

  wake(): void {
    if (this.#retryTimer === null) return;
    this.#endPause();
    this.#events.retry();
  }

  renew(): void {
    // The pool waits for the ends of its attempts.
    if (this.#isClosed) return;
    const hung = [...this.#attempts];
    if (!this.isPausing && hung.length === 0) return;
    this.#endPause();
    this.#attempts.clear();
    for (const attempt of hung) attempt.giveUp('the server answers again');
    this.#events.retry();
  }

  /** Notes that a session's connection is lost. */
  noteLoss(reason: Error, wasInUse: boolean): void {
    if (!this.#isClosed) this.#reachability.lost(reason, wasInUse);
  }

  close(): void {
    this.#isClosed = true;
    for (const attempt of this.#attempts) attempt.giveUp('the pool is closing');
    this.#endPause();
  }

  #failed(error: unknown): void {
    if (!this.#isClosed) {
      this.done.connectsFailed += 1;
      this.failure = this.#reachability.failed('pool', error);
      if (this.#retryTimer === null) this.#retryLater();
    }
    this.#events.failed();
  }

  #retryLater(): void {
    this.#mayHurryAt = performance.now() + minPauseMs * (1 + Math.random());
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null;
      this.#events.retry();
    }, this.#backoff.failed());
  }

  #endPause(): void {
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#retryTimer = null;
  }
}

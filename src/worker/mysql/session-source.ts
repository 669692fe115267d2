// Opens the pool's sessions: how many at once, and when to try again after a failure.
// Must not know who waits for a session, nor how many there should be.
import type { Log } from '../../shared/log.ts';
import { whereThrown } from '../../shared/where-thrown.ts';
import { Backoff } from './backoff.ts';
import { openWithin } from './bounded.ts';
import { RefusedError } from './commands.ts';
import { ServerFault } from './server-fault.ts';
import type { Session } from './session.ts';

/** Whoever wants sessions. */
export interface SessionTaker {
  opened(session: Session): void;
  /** An attempt failed, and another will be made after a delay: `retry` is called then. */
  failed(): void;
  retry(): void;
}

/** Opens sessions on request. While the last attempt has failed, one at a time: a server that comes back is not stormed. */
export class SessionSource {
  connecting = 0;
  readonly done = { connectsOk: 0, connectsFailed: 0 };
  readonly #open: (signal: AbortSignal) => Promise<Session>;
  readonly #taker: SessionTaker;
  readonly #log: Log;
  readonly #closing = new AbortController();
  readonly #backoff = new Backoff();
  #retryTimer: NodeJS.Timeout | null = null;

  constructor(open: (signal: AbortSignal) => Promise<Session>, taker: SessionTaker, log: Log) {
    this.#open = open;
    this.#taker = taker;
    this.#log = log;
  }

  /** The last attempt failed, and the next is not due yet. */
  get isPausing(): boolean {
    return this.#retryTimer !== null;
  }

  /** Whether a further session may be opened now. */
  get mayConnect(): boolean {
    if (this.isPausing || this.#closing.signal.aborted) return false;
    return this.#backoff.failures === 0 || this.connecting === 0;
  }

  connect(): void {
    this.connecting += 1;
    openWithin(this.#closing.signal, this.#open).then(
      (session) => {
        this.connecting -= 1;
        this.done.connectsOk += 1;
        this.#backoff.succeeded();
        this.#taker.opened(session);
      },
      (error: unknown) => {
        this.connecting -= 1;
        this.#failed(error);
      },
    );
  }

  /** Tells that a session's connection is gone; without anything running on it that is no more than news. */
  noteLoss(reason: Error, wasInUse: boolean): void {
    if (this.#closing.signal.aborted) return;
    const isForeign = 'code' in reason && !(reason instanceof ServerFault);
    const error = isForeign ? String(reason.code) : reason.message;
    const thrown = reason.cause === undefined ? {} : { thrown: whereThrown(reason.cause) };
    const level = wasInUse ? 'warn' : 'info';
    this.#log[level]('a connection to the database was lost', { error, ...thrown });
  }

  close(): void {
    this.#closing.abort(new Error('the pool is closing'));
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
  }

  #failed(error: unknown): void {
    if (!this.#closing.signal.aborted) {
      this.done.connectsFailed += 1;
      const attempt = this.#backoff.failures + 1;
      this.#log.warn('cannot connect to the database', { attempt, error: errorCode(error) });
      if (this.#retryTimer === null) this.#retryLater();
    }
    this.#taker.failed();
  }

  #retryLater(): void {
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = null;
      this.#taker.retry();
    }, this.#backoff.failed());
  }
}

/** A code only: messages of connect errors name hosts and users; our own do not. */
function errorCode(error: unknown): string {
  if (error instanceof ServerFault) return `${error.code}: ${error.message}`;
  if (error instanceof RefusedError) return String(error.errno);
  if (error instanceof Error && 'code' in error) return String(error.code);
  return error instanceof Error ? error.name : 'unknown';
}

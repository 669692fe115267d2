// Opening connections: bounded in time, ended by a stop, and with growing pauses between attempts. A frozen server accepts and says nothing.
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ping } from '../../../shared/mysql/commands.ts';
import { NameTimeout } from '../../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';

/** Connecting, authenticating and preparing together. */
const openTimeoutMs = 10_000;
/** How long an idle connection may take to answer a ping. */
const proofTimeoutMs = 1_000;
/** If a timer fires this late, this process was paused, and the answer may be there already: the work gets one more turn. */
const lateTimerMs = 200;

/**
 * Does `work`, whose signal is aborted after some time, or with `closing`. If it was aborted, this rejects with the signal's reason, except
 * that a NameTimeout of `work` says more.
 */
export async function within<Result>(
  closing: AbortSignal,
  ms: number,
  tooLate: string,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const bound = new AbortController();
  const close = () => bound.abort(closing.reason);
  const done = boundTime(ms, () =>
    bound.abort(Object.assign(new Error(tooLate), { code: 'ETIMEDOUT' })),
  );
  closing.addEventListener('abort', close, { once: true });
  try {
    if (closing.aborted) close();
    return await work(bound.signal);
  } catch (error) {
    throw bound.signal.aborted ? whyAborted(bound.signal, error) : error;
  } finally {
    done();
    closing.removeEventListener('abort', close);
  }
}

/** Calls `tooLate` after some time, unless the returned function is called before. */
function boundTime(ms: number, tooLate: () => void): () => void {
  const dueAt = performance.now() + ms;
  let isDone = false;
  const timer = setTimeout(async () => {
    if (performance.now() - dueAt > lateTimerMs) await nextTurn();
    if (!isDone) tooLate();
  }, ms);
  return () => {
    isDone = true;
    clearTimeout(timer);
  };
}

/** The reason of an aborted signal, unless the error of the work that it ended says more. */
export function whyAborted(signal: AbortSignal, error: unknown): Error {
  return error instanceof NameTimeout ? error : (signal.reason as Error);
}

/** Opens something, in 10 s at most. */
function openWithin<Opened>(
  closing: AbortSignal,
  open: (signal: AbortSignal) => Promise<Opened>,
): Promise<Opened> {
  return within(closing, openTimeoutMs, 'connecting took too long', open);
}

/** One attempt to open something. Its owner can give it up. */
export class Attempt {
  readonly #end = new AbortController();

  /** Opens it, in 10 s at most. Rejects with the reason if the attempt is given up. */
  open<Opened>(open: (signal: AbortSignal) => Promise<Opened>): Promise<Opened> {
    return openWithin(this.#end.signal, open);
  }

  giveUp(reason: string): void {
    this.#end.abort(new Error(reason));
  }
}

/** Asks something on a connection. If that fails, or `signal` is aborted, the connection is destroyed. */
export async function prepare<Result>(
  connection: Connection,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const abort = () => connection.destroy(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    if (signal.aborted) abort();
    return await work();
  } catch (cause) {
    connection.destroy(new Error('the connection could not be prepared', { cause }));
    throw cause;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Asks whether the server is still there. Rejects if it does not answer: the connection is then lost. */
export async function proveAlive(connection: Connection): Promise<void> {
  const done = boundTime(proofTimeoutMs, () =>
    connection.destroy(new Error('an idle connection did not answer')),
  );
  try {
    await ping(connection);
  } finally {
    done();
  }
}

const firstPauseMs = 50;
const maxPauseMs = 10_000;

/** Pauses between attempts to connect that no request waits for: growing, bounded, jittered. */
export class Backoff {
  failures = 0;

  succeeded(): void {
    this.failures = 0;
  }

  /** Notes a failure; returns the pause in ms until the next attempt, between half and all of the step. */
  failed(): number {
    const step = Math.min(firstPauseMs * 2 ** this.failures, maxPauseMs);
    this.failures += 1;
    return step / 2 + (Math.random() * step) / 2;
  }
}

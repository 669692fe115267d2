// First steps on a connection, bounded in time and ended by a stop: a frozen server accepts and says nothing.
// Must not know what the connection is for.
import { ping } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';

/** How long connecting, authenticating and preparing may take together. */
const openTimeoutMs = 10_000;

/** How long a connection that lay idle may take to show that it is there. */
const proofTimeoutMs = 1_000;

/** Opens something by `open`, whose signal is aborted when it takes too long or `closing` is aborted. */
export async function openWithin<Opened>(
  closing: AbortSignal,
  open: (signal: AbortSignal) => Promise<Opened>,
): Promise<Opened> {
  const bound = new AbortController();
  const close = () => bound.abort(closing.reason);
  const tooLong = Object.assign(new Error('connecting took too long'), { code: 'ETIMEDOUT' });
  const timer = setTimeout(() => bound.abort(tooLong), openTimeoutMs);
  closing.addEventListener('abort', close, { once: true });
  try {
    if (closing.aborted) close();
    return await open(bound.signal);
  } finally {
    clearTimeout(timer);
    closing.removeEventListener('abort', close);
  }
}

/** Does the first work on a connection. A failure of it, or the abort of `signal`, destroys the connection. */
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

/** Asks whether the server is still there. Rejects when it does not answer: the connection is then lost. */
export async function proveAlive(connection: Connection): Promise<void> {
  const timer = setTimeout(
    () => connection.destroy(new Error('an idle connection did not answer')),
    proofTimeoutMs,
  );
  try {
    await ping(connection);
  } finally {
    clearTimeout(timer);
  }
}

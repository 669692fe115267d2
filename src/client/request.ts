// A request with all its repetitions: which failed requests are sent again, when, and how often.

import { DbhttpdError } from './error.ts';
import { keyOf, type QueryOptions, type RetryPolicy, requestIdOf, retriesOf } from './options.ts';
import {
  type BegunReply,
  type Connection,
  isFailedServer,
  type JsonObject,
  noReplyOfOurs,
  readJson,
  type Sent,
  sendRequest,
} from './transport.ts';

/** The fields of a request that every result has. */
export type About = {
  /** The request's id in the gateway's log. */
  readonly requestId: string;
  readonly section: string;
  /** Whether an earlier request with the same idempotency key did this already. */
  readonly replayed: boolean;
  /** Whether the repeated reply lacks its rows, since they were too many to keep. */
  readonly rowsOmitted: boolean;
};

/** A complete reply. */
export type Whole = {
  readonly json: JsonObject;
  readonly about: About;
  readonly begun: BegunReply;
};

/** Builds a request from its options. */
export function toSent(path: string, body: string, options: QueryOptions): Sent {
  return {
    method: 'POST',
    path,
    body,
    accept: 'application/json',
    isReadOnly: options.readOnly === true,
    idempotencyKey: keyOf(options),
    requestId: requestIdOf(options),
    seen: options.seen ?? null,
    signal: options.signal ?? null,
  };
}

/** Sends a request, again if it fails and may be repeated, and returns the reply's JSON. Throws a DbhttpdError. */
export function askWhole(
  connection: Connection,
  sent: Sent,
  options: QueryOptions,
): Promise<Whole> {
  return repeat(sent, options, async () => {
    const begun = await sendRequest(connection, sent);
    const json = await readJson(begun, sent);
    const about: About = {
      requestId: String(json.request_id),
      section: String(json.section),
      replayed: begun.response.headers.get('idempotency-replayed') === 'true',
      rowsOmitted: json.rows_omitted === true,
    };
    return { json, about, begun };
  });
}

/** Ends the requests with an id. False: there is none, or it is over. Throws a DbhttpdError, and a TypeError for an invalid id. */
export async function cancelRequests(
  connection: Connection,
  requestId: string,
  { signal, retry }: Pick<QueryOptions, 'signal' | 'retry'>,
): Promise<boolean> {
  const id = requestIdOf({ requestId }) ?? '';
  const asked = toSent(`/v1/requests/${encodeURIComponent(id)}`, '', { signal });
  const sent: Sent = { ...asked, method: 'DELETE', body: null };
  try {
    await repeat(sent, { retry }, async () => {
      const begun = await sendRequest(connection, sent);
      const { killed } = await readJson(begun, sent);
      if (killed !== true) throw noReplyOfOurs(begun, sent);
    });
    return true;
  } catch (error) {
    if (error instanceof DbhttpdError && error.code === 'NOT_FOUND') return false;
    throw error;
  }
}

/** Attempts a request until it succeeds or may not be repeated. Rejects with the error of the last attempt. */
export function repeat<Reply>(
  { idempotencyKey, signal }: Sent,
  options: QueryOptions,
  attempt: () => Promise<Reply>,
): Promise<Reply> {
  return withRetries(
    retriesOf(options),
    (error) => maySendAgain(error, idempotencyKey),
    signal,
    attempt,
  );
}

/** The first wait, if the gateway names none. It doubles each time. */
const firstDelayMs = 100;
/** The caller or an operator has ended the request on purpose. */
const endedOnPurpose: ReadonlySet<string> = new Set(['ABORTED', 'KILLED']);
const ofEarlier = 'This is true of the last attempt: an earlier one may have been executed.';
/** Spreads the repetitions of clients that were rejected at the same time. */
const maxJitter = 0.25;

/**
 * Whether the client may send a request again by itself. It may if no connection could be made, or if the gateway rejected the request with
 * 429 or 503 and `not_executed`. With an idempotency key it also may if the request was possibly executed, since the gateway recognises it. A request that was ended on purpose is
 * never repeated.
 */
export function maySendAgain(
  { code, status, outcome, retryable }: DbhttpdError,
  key: string | null,
): boolean {
  if (endedOnPurpose.has(code)) return false;
  if (outcome === 'not_executed' && (status === 503 || status === 429)) return true;
  if (outcome === 'not_executed' && code === 'FETCH_FAILED') return true;
  if (key === null) return false;
  return retryable || (outcome === 'unknown' && (status === null || isFailedServer(status)));
}

/**
 * Whether the client may ask for the end of a transaction again: the gateway reports how a transaction ended, however often it is asked.
 * It cannot if it lost its own connection in COMMIT.
 * @param isInDoubt an earlier COMMIT may still be running
 */
export function mayEndAgain({ code, status, outcome }: DbhttpdError, isInDoubt: boolean): boolean {
  if (endedOnPurpose.has(code) || code === 'CONNECTION_LOST') return false;
  if (outcome === 'rolled_back' || outcome === 'partial') return false;
  if (code === 'TRANSACTION_ENDED') return isInDoubt;
  return status === null || isFailedServer(status) || code === 'REPLY_CUT';
}

/**
 * Attempts until one succeeds, or fails in a way that may not be repeated. The outcome is that of all attempts: `not_executed` only if
 * it is true of each.
 * @param mayRepeat called for each failure; `isInDoubt`: an earlier attempt may have been executed
 */
export async function withRetries<Reply>(
  policy: RetryPolicy,
  mayRepeat: (error: DbhttpdError, isInDoubt: boolean) => boolean,
  signal: AbortSignal | null,
  attempt: () => Promise<Reply>,
): Promise<Reply> {
  const startedAt = Date.now();
  let isInDoubt = false;
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof DbhttpdError)) throw error;
      const delayMs = delayOf(error, count);
      const isOver =
        !mayRepeat(error, isInDoubt) ||
        count >= policy.attempts ||
        Date.now() - startedAt + delayMs > policy.withinMs;
      isInDoubt ||= error.outcome === 'unknown';
      // The rejection of one attempt says nothing about the attempt before.
      const whole =
        isInDoubt && error.outcome === 'not_executed'
          ? error.changed({ outcome: 'unknown' }, `${error.message} ${ofEarlier}`)
          : error;
      if (isOver) throw whole;
      if (!(await waited(delayMs, signal))) throw abortedBetween(whole, signal);
    }
  }
}

function abortedBetween(last: DbhttpdError, signal: AbortSignal | null): DbhttpdError {
  const facts = { code: 'ABORTED', retryable: false, cause: signal?.reason };
  return last.changed(facts, `The request was aborted before it was sent again. ${last.message}`);
}

function delayOf({ retryAfterMs }: DbhttpdError, count: number): number {
  const delayMs = retryAfterMs ?? firstDelayMs * 2 ** (count - 1);
  return delayMs * (1 + maxJitter * Math.random());
}

/** Waits; resolves to false if the signal aborts first. */
function waited(delayMs: number, signal: AbortSignal | null): Promise<boolean> {
  if (signal?.aborted === true) return Promise.resolve(false);
  return new Promise((resolve) => {
    const aborted = () => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', aborted);
      resolve(true);
    }, delayMs);
    signal?.addEventListener('abort', aborted, { once: true });
  });
}

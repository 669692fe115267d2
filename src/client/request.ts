// A request with all its repetitions: which failed requests are sent again, when, and how often.

import { DbhttpdError } from './error.ts';
import { keyOf, type QueryOptions, type RetryPolicy, retriesOf } from './options.ts';
import type { Told } from './results.ts';
import { type BegunReply, type Connection, readJson, type Sent, sendRequest } from './transport.ts';

/** What every result says of its request. */
export type About = {
  /** What the gateway's log calls the request. */
  readonly requestId: string;
  readonly section: string;
  /** Whether an earlier request with the same idempotency key had done it already. */
  readonly replayed: boolean;
  /** Whether the gateway has not kept the rows of the reply that it repeats: they were too many. */
  readonly rowsOmitted: boolean;
};

/** A reply that has come whole. */
export type Whole = { readonly told: Told; readonly about: About; readonly begun: BegunReply };

/** A request as its options want it. */
export function toSent(path: string, body: string, options: QueryOptions): Sent {
  return {
    path,
    body,
    accept: 'application/json',
    isReadOnly: options.readOnly === true,
    idempotencyKey: keyOf(options),
    seen: options.seen ?? null,
    signal: options.signal ?? null,
  };
}

/** A reply in JSON, sent again as often as it may be. Throws a DbhttpdError. */
export function askWhole(
  connection: Connection,
  sent: Sent,
  options: QueryOptions,
): Promise<Whole> {
  return repeat(sent, options, async () => {
    const begun = await sendRequest(connection, sent);
    const told = (await readJson(begun, sent)) as Told;
    const about: About = {
      requestId: String(told.request_id),
      section: String(told.section),
      replayed: begun.response.headers.get('idempotency-replayed') === 'true',
      rowsOmitted: told.rows_omitted === true,
    };
    return { told, about, begun };
  });
}

/** Attempts, as often as the request may be sent. Rejects with the last one's error. */
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

/** Of a wait that the gateway does not name: doubled each time. */
const firstDelayMs = 100;
/** Somebody has ended the request on purpose: the caller, or whoever watches over the server. */
const endedOnPurpose: ReadonlySet<string> = new Set(['ABORTED', 'KILLED']);
const ofEarlier = 'That is true of the last attempt: an earlier one may have been executed.';
/** Clients that were refused together do not come back together. */
const maxJitter = 0.25;

/**
 * Whether a request may be sent again without asking anybody. Without an idempotency key that is only what the gateway itself
 * has refused with 503 and `not_executed`; with one also what may have been executed, since the gateway finds it again. Never what was ended on purpose.
 */
export function maySendAgain(
  { code, status, outcome, retryable }: DbhttpdError,
  key: string | null,
): boolean {
  if (endedOnPurpose.has(code)) return false;
  if (status === 503 && outcome === 'not_executed') return true;
  if (key === null) return false;
  return retryable || (outcome === 'unknown' && (status === null || status >= 500));
}

/**
 * Whether the end of a transaction may be asked for again: the gateway tells how a transaction has ended, however often it is asked. Not
 * where it has lost its own connection in COMMIT: it knows no more the next time.
 * @param isInDoubt an earlier COMMIT may still be under way, and be known later
 */
export function mayEndAgain({ code, status, outcome }: DbhttpdError, isInDoubt: boolean): boolean {
  if (endedOnPurpose.has(code) || code === 'CONNECTION_LOST') return false;
  if (outcome === 'rolled_back' || outcome === 'partial') return false;
  if (code === 'TRANSACTION_ENDED') return isInDoubt;
  return status === null || status >= 500 || code === 'REPLY_CUT';
}

/**
 * Attempts until one succeeds, or one fails in a way that is not to be repeated. What one of several attempts may have done is not
 * forgotten: `not_executed` is said of the whole request only if it is true of each.
 * @param mayRepeat asked of each failure; `isInDoubt`: an earlier attempt may have been executed
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
      // A request that was refused says nothing of the one before it.
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
  const facts = { code: 'ABORTED', cause: signal?.reason };
  return last.changed(facts, `The request was aborted before it was sent again. ${last.message}`);
}

function delayOf({ retryAfterMs }: DbhttpdError, count: number): number {
  const delayMs = retryAfterMs ?? firstDelayMs * 2 ** (count - 1);
  return delayMs * (1 + maxJitter * Math.random());
}

/** Whether it was waited to the end; false: the signal came first. */
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

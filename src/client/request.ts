// A request of the client with all its repetitions, and its reply as JSON.
import { keyOf, type QueryOptions, retriesOf } from './options.ts';
import type { Told } from './results.ts';
import { maySendAgain, withRetries } from './retries.ts';
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

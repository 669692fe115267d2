// One request to the gateway and its whole reply, by fetch. Every failure is a DbhttpdError.
import { DbhttpdError, type ErrorFacts, type Outcome, outcomes } from './error.ts';
import type { Seen } from './seen.ts';

/** The address of the gateway, and the token for it. */
export type Connection = {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
  readonly fetch: typeof fetch;
};

/** One request. */
export type Sent = {
  readonly method: 'POST' | 'DELETE';
  readonly path: string;
  /** JSON; null: the request has no body. */
  readonly body: string | null;
  readonly accept: string;
  /** Whether it can change nothing. */
  readonly isReadOnly: boolean;
  readonly idempotencyKey: string | null;
  /** The caller's id; null: the gateway makes one. */
  readonly requestId: string | null;
  /** Null: the request has no reader. */
  readonly seen: Seen | null;
  readonly signal: AbortSignal | null;
};

/** An object of a reply's JSON, not yet checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A reply with status 200 or 201, before its body. */
export type BegunReply = {
  /** The gateway's. */
  readonly url: string;
  readonly response: Response;
  readonly requestId: string | null;
};

/** The codes of a connection that was never established: Node's, in the error's cause, and Bun's, in the error itself. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
  'FailedToOpenSocket',
]);
/** Deno has no codes. A request that was sent is `client error (SendRequest)`. */
const neverConnectedText = /client error \(Connect\)|error trying to connect/;

/** The gateway's statuses of success; 201 is that of a new transaction. */
const succeeded = new Set([200, 201]);

/** Sends a request; resolves once a reply of 200 or 201 has begun. Throws a DbhttpdError. */
export async function sendRequest(connection: Connection, sent: Sent): Promise<BegunReply> {
  const response = await begin(connection, sent);
  const requestId = response.headers.get('x-request-id');
  const begun = { url: connection.url, response, requestId };
  if (succeeded.has(response.status)) return begun;
  throw failureOf(begun, await readText(begun, sent), sent);
}

/** Resolves to the head of the reply. A request with a `Seen` first waits for its turn. */
async function begin(connection: Connection, sent: Sent): Promise<Response> {
  const headers: Record<string, string> = { Accept: sent.accept };
  if (sent.body !== null) headers['Content-Type'] = 'application/json';
  if (sent.requestId !== null) headers['X-Request-ID'] = sent.requestId;
  if (connection.token !== null) headers.Authorization = `Bearer ${connection.token}`;
  if (sent.idempotencyKey !== null) headers['Idempotency-Key'] = sent.idempotencyKey;
  const send = () => fetchHead(connection, sent, headers);
  return await (sent.seen === null ? send() : sent.seen.carry(headers, sent.signal, send));
}

async function fetchHead(
  { url, fetch }: Connection,
  sent: Sent,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  if (sent.signal?.aborted === true) throw abortedBefore(sent);
  try {
    return await fetch(`${url}${sent.path}`, {
      method: sent.method,
      headers,
      body: sent.body,
      // A request that follows a redirect would be sent twice.
      redirect: 'manual',
      signal: sent.signal,
    });
  } catch (cause) {
    const known = { status: null, requestId: sent.requestId };
    throw interrupted(sent, 'FETCH_FAILED', `${url} sent no reply`, { url, ...known }, cause);
  }
}

/** The rest of a reply as text. Throws a DbhttpdError if it is cut. */
export async function readText(begun: BegunReply, sent: Sent): Promise<string> {
  try {
    return await begun.response.text();
  } catch (cause) {
    throw cutBefore('its end', begun, sent, cause);
  }
}

/** A whole reply as JSON. Throws a DbhttpdError. */
export async function readJson(begun: BegunReply, sent: Sent): Promise<JsonObject> {
  const text = await readText(begun, sent);
  const parsed = parseObject(text);
  if (parsed === null) throw noReplyOfOurs(begun, sent);
  return parsed;
}

/** The error of a reply that was cut. @param what the part that is missing, and all behind it */
export function cutBefore(
  what: string,
  { url, response, requestId }: BegunReply,
  sent: Sent,
  cause: unknown,
): DbhttpdError {
  const known = { url, status: response.status, requestId: requestId ?? sent.requestId };
  const text = `The reply of ${url} was cut before ${what}`;
  return interrupted(sent, 'REPLY_CUT', text, known, cause);
}

type Known = { readonly url: string } & Pick<ErrorFacts, 'status' | 'requestId'>;

/** The error of a request whose reply failed, and which may have been executed. */
function interrupted(
  sent: Sent,
  code: 'FETCH_FAILED' | 'REPLY_CUT',
  what: string,
  { url, ...known }: Known,
  cause: unknown,
): DbhttpdError {
  const isAborted = sent.signal?.aborted === true;
  const isUnsent = !isAborted && wasNeverConnected(cause);
  const outcome: Outcome = isUnsent ? 'not_executed' : afterSending(sent);
  const why = isUnsent ? `Could not connect to ${url}` : what;
  const reason = isAborted ? 'The request was aborted' : `${why}${describeCause(cause)}`;
  return new DbhttpdError(`${reason}. ${meanings[outcome]}`, {
    ...known,
    code: isAborted ? 'ABORTED' : code,
    outcome,
    retryable: !isAborted && isRepeatable(sent, outcome),
    idempotencyKey: sent.idempotencyKey,
    cause: isAborted ? sent.signal?.reason : cause,
  });
}

function abortedBefore({ signal, idempotencyKey, requestId }: Sent): DbhttpdError {
  return new DbhttpdError('The request was aborted before it was sent.', {
    code: 'ABORTED',
    outcome: 'not_executed',
    retryable: false,
    requestId,
    idempotencyKey,
    cause: signal?.reason,
  });
}

const meanings: Readonly<Record<'not_executed' | 'failed' | 'unknown', string>> = {
  not_executed: 'Nothing was executed.',
  failed: 'It was read-only: nothing has changed.',
  unknown: 'Its statements may or may not have been applied.',
};

function afterSending({ isReadOnly }: Sent): 'failed' | 'unknown' {
  return isReadOnly ? 'failed' : 'unknown';
}

/** Whether a request without a reply may be repeated: the gateway recognises one with a key. */
function isRepeatable({ idempotencyKey }: Sent, outcome: Outcome): boolean {
  return outcome !== 'unknown' || idempotencyKey !== null;
}

/** Longest text of a cause in a message. */
const maxCauseLength = 200;

/** The cause in parentheses: its text, and its code unless the text has it. Node and Bun have them in different places. */
function describeCause(error: unknown): string {
  const { cause } = (error ?? {}) as { readonly cause?: unknown };
  const { code, message } = (cause ?? error ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  const name = typeof code === 'string' ? code : '';
  const text = typeof message === 'string' ? message.slice(0, maxCauseLength) : '';
  const parts = text.includes(name) ? [text] : [name, text];
  const described = parts.filter((part) => part !== '').join(': ');
  return described === '' ? '' : ` (${described})`;
}

function wasNeverConnected(error: unknown): boolean {
  const { code, message, cause } = (error ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
    readonly cause?: { readonly code?: unknown } | null;
  };
  if (neverConnected.has(String(cause?.code ?? code))) return true;
  return neverConnectedText.test(String(message));
}

/** Whether a status says that the request may succeed later: the server is overloaded or has failed. */
export function isFailedServer(status: number): boolean {
  return status === 429 || status >= 500;
}

/** The failure that the gateway reports. The reply of another server, such as a proxy, is not trusted. */
function failureOf(begun: BegunReply, text: string, sent: Sent): DbhttpdError {
  const { response } = begun;
  const reply = parseObject(text);
  const facts = reply === null ? null : (problemOf(reply) ?? bareOf(reply));
  if (facts === null) return noReplyOfOurs(begun, sent);
  const { message, ...rest } = facts;
  return new DbhttpdError(message, {
    ...rest,
    status: response.status,
    requestId: rest.requestId ?? response.headers.get('x-request-id'),
    idempotencyKey: sent.idempotencyKey,
    retryAfterMs: retryAfterOf(response),
  });
}

type Reported = ErrorFacts & { readonly message: string };

/** Reads a problem (RFC 9457) of the gateway's; null: it is another server's. */
export function problemOf(fields: JsonObject): Reported | null {
  const { code, outcome } = fields;
  if (typeof code !== 'string' || !isOutcome(outcome)) return null;
  return {
    message: [fields.detail, fields.hint].filter((part) => typeof part === 'string').join('. '),
    code,
    outcome,
    retryable: fields.retryable === true,
    errno: numberOf(fields.errno),
    sqlstate: textOf(fields.sqlstate),
    requestId: textOf(fields.request_id),
    statement: numberOf(fields.statement),
    offset: numberOf(fields.offset),
  };
}

/** Reads the shorter failure of requests outside /v1. */
function bareOf({ ERROR, CODE, OUTCOME }: JsonObject): Reported | null {
  if (typeof CODE !== 'string' || !isOutcome(OUTCOME)) return null;
  return { message: String(ERROR), code: CODE, outcome: OUTCOME, retryable: false };
}

/** The error for a reply that is not the gateway's: the gateway may have received the request. */
export function noReplyOfOurs({ url, response }: BegunReply, sent: Sent): DbhttpdError {
  const { status, headers } = response;
  const outcome = afterSending(sent);
  const what = `The reply of ${url} (status ${status}) is not a gateway's`;
  return new DbhttpdError(`${what}. ${meanings[outcome]}`, {
    code: 'BAD_REPLY',
    outcome,
    retryable: isFailedServer(status) && isRepeatable(sent, outcome),
    status,
    requestId: headers.get('x-request-id') ?? sent.requestId,
    idempotencyKey: sent.idempotencyKey,
    retryAfterMs: retryAfterOf(response),
  });
}

/** Retry-After in seconds (RFC 9110 section 10.2.3): the gateway never sends dates. */
function retryAfterOf({ headers }: Response): number | null {
  const seconds = headers.get('retry-after');
  return seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

function parseObject(text: string): JsonObject | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && !Array.isArray(parsed)
      ? (parsed as JsonObject | null)
      : null;
  } catch {
    return null;
  }
}

function isOutcome(value: unknown): value is Outcome {
  return (outcomes as readonly unknown[]).includes(value);
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

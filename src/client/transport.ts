// One request to the gateway and its whole reply, by fetch; every way in which that can fail is a DbhttpdError.
import { DbhttpdError, type ErrorFacts, type Outcome, outcomes } from './error.ts';
import type { Seen } from './seen.ts';

/** Where the gateway is, and who asks. */
export type Connection = {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | null;
  readonly fetch: typeof fetch;
};

/** A request as it is sent, once. */
export type Sent = {
  readonly path: string;
  /** JSON. */
  readonly body: string;
  readonly accept: string;
  /** Whether it can have changed anything. */
  readonly isReadOnly: boolean;
  readonly idempotencyKey: string | null;
  /** Null: nobody asks what was seen. */
  readonly seen: Seen | null;
  readonly signal: AbortSignal | null;
};

/** A reply that has begun well. */
export type BegunReply = {
  readonly response: Response;
  readonly requestId: string | null;
};

/** What Node says of a connection that never came to be; what other runtimes say tells nothing. */
const neverConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** What the gateway answers to what it has done: 201 where a transaction was begun. */
const succeeded = new Set([200, 201]);

/** Sends a request; resolves once a reply of 200 or 201 has begun. Throws a DbhttpdError. */
export async function sendRequest(connection: Connection, sent: Sent): Promise<BegunReply> {
  if (sent.signal?.aborted === true) throw abortedBefore(sent);
  const response = await begin(connection, sent);
  const requestId = response.headers.get('x-request-id');
  if (succeeded.has(response.status)) return { response, requestId };
  throw failureOf(response, await readText({ response, requestId }, sent), sent);
}

async function begin({ url, token, fetch }: Connection, sent: Sent): Promise<Response> {
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    Accept: sent.accept,
  };
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (sent.idempotencyKey !== null) headers['Idempotency-Key'] = sent.idempotencyKey;
  const send = () =>
    fetch(`${url}${sent.path}`, {
      method: 'POST',
      headers,
      body: sent.body,
      // What is sent to somebody else was sent twice.
      redirect: 'manual',
      signal: sent.signal,
    });
  try {
    return await (sent.seen === null ? send() : sent.seen.carry(headers, send));
  } catch (cause) {
    throw interrupted(sent, 'FETCH_FAILED', 'The request had no reply', null, cause);
  }
}

/** The rest of a reply as text. Throws a DbhttpdError when it is cut. */
export async function readText({ response, requestId }: BegunReply, sent: Sent): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    const told = { status: response.status, requestId };
    throw interrupted(sent, 'REPLY_CUT', 'The reply was cut before its end', told, cause);
  }
}

/** A reply that came whole, as JSON. Throws a DbhttpdError. */
export async function readJson(begun: BegunReply, sent: Sent): Promise<object> {
  const text = await readText(begun, sent);
  const parsed = parseObject(text);
  if (parsed === null) throw noReplyOfOurs(begun.response, sent);
  return parsed;
}

/** What is told of a request that may have been executed, and how its reply failed. */
export function interrupted(
  sent: Sent,
  code: 'FETCH_FAILED' | 'REPLY_CUT',
  what: string,
  told: Pick<ErrorFacts, 'status' | 'requestId'> | null,
  cause: unknown,
): DbhttpdError {
  const isAborted = sent.signal?.aborted === true;
  const isUnsent = !isAborted && neverConnected.has(codeOf(cause));
  const outcome: Outcome = isUnsent ? 'not_executed' : afterSending(sent);
  const why = isAborted ? 'The request was aborted' : what;
  return new DbhttpdError(`${why}. ${meanings[outcome]}`, {
    ...told,
    code: isAborted ? 'ABORTED' : code,
    outcome,
    retryable: isRepeatable(sent, outcome),
    idempotencyKey: sent.idempotencyKey,
    cause: isAborted ? sent.signal?.reason : cause,
  });
}

function abortedBefore({ signal, idempotencyKey }: Sent): DbhttpdError {
  return new DbhttpdError('The request was aborted before it was sent.', {
    code: 'ABORTED',
    outcome: 'not_executed',
    retryable: true,
    idempotencyKey,
    cause: signal?.reason,
  });
}

const meanings: Readonly<Record<'not_executed' | 'failed' | 'unknown', string>> = {
  not_executed: 'Nobody could be connected to: nothing was executed.',
  failed: 'It was to read only: nothing has changed.',
  unknown: 'Its statements may or may not have been applied.',
};

function afterSending({ isReadOnly }: Sent): 'failed' | 'unknown' {
  return isReadOnly ? 'failed' : 'unknown';
}

/** Of a request without an answer: with a key the gateway knows it again. */
function isRepeatable({ idempotencyKey }: Sent, outcome: Outcome): boolean {
  return outcome !== 'unknown' || idempotencyKey !== null;
}

function codeOf(error: unknown): string {
  const cause = (error as { cause?: { code?: unknown } } | null)?.cause;
  return String(cause?.code ?? '');
}

/** A refusal or failure that the gateway tells; what somebody between us says instead is not believed. */
function failureOf(response: Response, text: string, sent: Sent): DbhttpdError {
  const told = parseObject(text);
  const facts = told === null ? null : (problemOf(told) ?? bareOf(told));
  if (facts === null) return noReplyOfOurs(response, sent);
  const { message, ...rest } = facts;
  return new DbhttpdError(message, {
    ...rest,
    status: response.status,
    requestId: rest.requestId ?? response.headers.get('x-request-id'),
    idempotencyKey: sent.idempotencyKey,
    retryAfterMs: retryAfterOf(response),
  });
}

type Told = ErrorFacts & { readonly message: string };

/** A problem's object (RFC 9457) as the gateway fills it; null: it is another's. */
export function problemOf(told: object): Told | null {
  const fields = told as Readonly<Record<string, unknown>>;
  const { code, outcome } = fields;
  if (typeof code !== 'string' || !isOutcome(outcome)) return null;
  return {
    message: String(fields.detail),
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

/** What is answered to a request whose path was not understood: the same in fewer words. */
function bareOf(told: object): Told | null {
  const { ERROR, CODE, OUTCOME } = told as Readonly<Record<string, unknown>>;
  if (typeof CODE !== 'string' || !isOutcome(OUTCOME)) return null;
  return { message: String(ERROR), code: CODE, outcome: OUTCOME, retryable: false };
}

/** A reply that the gateway does not give: whether it was asked before is not known. */
export function noReplyOfOurs(response: Response, sent: Sent): DbhttpdError {
  const { status, headers } = response;
  const outcome = afterSending(sent);
  return new DbhttpdError(
    `The reply (status ${status}) is not one of a gateway's. ${meanings[outcome]}`,
    {
      code: 'BAD_REPLY',
      outcome,
      retryable: status >= 500 && isRepeatable(sent, outcome),
      status,
      requestId: headers.get('x-request-id'),
      idempotencyKey: sent.idempotencyKey,
      retryAfterMs: retryAfterOf(response),
    },
  );
}

/** Retry-After in seconds (RFC 9110 section 10.2.3): the gateway gives no dates. */
function retryAfterOf({ headers }: Response): number | null {
  const seconds = headers.get('retry-after');
  return seconds !== null && /^\d{1,9}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

function parseObject(text: string): object | null {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && !Array.isArray(parsed) ? parsed : null;
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

// The client of /v1: connects to a gateway by fetch, for Node, browsers and edge runtimes. Needs nothing else.
// Must not know anything of the gateway but its interface.
import { DbhttpdError, type Outcome } from './error.ts';
import { encodeParameters, type ParameterOrList, type Parameters } from './parameters.ts';
import { type Column, decodeResult, type Layout, type StatementResult } from './results.ts';
import { defaultRetries, type RetryPolicy, withRetries } from './retries.ts';
import { isInLines, readRows, type StreamEnd } from './row-stream.ts';
import { type Fragment, isTemplate, renderTemplate, sql } from './template.ts';
import { type Connection, readJson, type Sent, sendRequest } from './transport.ts';

export type { Column, Fragment, Outcome, Parameters, RetryPolicy, StatementResult, StreamEnd };
export { DbhttpdError, sql };

/** What a request may choose. */
export type QueryOptions = {
  /** The gateway's deadline, in ms; without it the section's `statement_timeout`. */
  readonly timeoutMs?: number | undefined;
  /** Only a statement that reads, in a READ ONLY transaction: then an interrupted request has changed nothing. */
  readonly readOnly?: boolean | undefined;
  readonly maxRows?: number | undefined;
  /** `object` where nothing is said. */
  readonly rows?: Layout['rows'] | undefined;
  /** BIGINT as text (where nothing is said) or as BigInt. */
  readonly bigint?: Layout['bigint'] | undefined;
  /** JSON columns as values (where nothing is said), whose numbers are JavaScript's, or as their text. */
  readonly json?: 'value' | 'string' | undefined;
  /** Of 1 to 255 visible characters, or `true` for one of the client's own: the gateway executes the request once, however often it is sent. */
  readonly idempotencyKey?: string | true | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Bounds of what is sent again by itself; false: nothing is. */
  readonly retry?: Partial<RetryPolicy> | false | undefined;
};

/** All of them; the compiler names one that is missing. */
const optionNames: Readonly<Record<keyof QueryOptions, true>> = {
  timeoutMs: true,
  readOnly: true,
  maxRows: true,
  rows: true,
  bigint: true,
  json: true,
  idempotencyKey: true,
  signal: true,
  retry: true,
};

/** What `query` resolves to: the first result that has rows, else the last one; of a CALL all stand in `results`. */
export type QueryResult<Row> = StatementResult<Row> & {
  readonly results: readonly StatementResult<Row>[];
  /** What the gateway's log calls the request. */
  readonly requestId: string;
  readonly section: string;
  /** Whether an earlier request with the same idempotency key had done it already. */
  readonly replayed: boolean;
};

/** One statement, as a tagged template whose values become parameters, or as text with its parameters. */
export type Query = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly (ParameterOrList | Fragment)[]
  ): Promise<QueryResult<Row>>;
  <Row = Record<string, unknown>>(
    sql: string,
    params?: Parameters,
    options?: QueryOptions,
  ): Promise<QueryResult<Row>>;
};

/** The same, row by row. Nothing is sent before the first row is asked for; who leaves the loop ends the statement. */
export type Stream = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly (ParameterOrList | Fragment)[]
  ): AsyncGenerator<Row, StreamEnd, void>;
  <Row = Record<string, unknown>>(
    sql: string,
    params?: Parameters,
    options?: QueryOptions,
  ): AsyncGenerator<Row, StreamEnd, void>;
};

/** A gateway's section, to be asked. It holds no connection: there is nothing to close. */
export type Client = {
  readonly query: Query;
  readonly stream: Stream;
  /** The same client with other options where a request says nothing. */
  readonly with: (options: QueryOptions) => Client;
};

/** What a gateway is reached by. */
export type ConnectOptions = QueryOptions & {
  /** `http://host:port`, also with a path before /v1 where a proxy wants one. */
  readonly url: string;
  readonly token?: string | undefined;
  /** The runtime's own where it is not given. */
  readonly fetch?: typeof fetch | undefined;
};

/** Creates a client; nothing is sent yet. Throws a TypeError for a URL or token that cannot be one. */
export function connect({ url, token, fetch: given, ...options }: ConnectOptions): Client {
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError('token must be visible ASCII characters');
  }
  // Some runtimes' fetch must not be called as a method of something else.
  const send: typeof fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  return createClient({ url: baseOf(url), token: token ?? null, fetch: send }, options);
}

function createClient(connection: Connection, defaults: QueryOptions): Client {
  checkNames(defaults);
  const query = async (
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): Promise<QueryResult<unknown>> => {
    const asked = toStatement(statement, rest);
    return await runQuery(connection, asked, { ...defaults, ...asked.options });
  };
  async function* stream(
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): AsyncGenerator<unknown, StreamEnd, void> {
    const asked = toStatement(statement, rest);
    return yield* runStream(connection, asked, { ...defaults, ...asked.options });
  }
  return {
    query: query as Query,
    stream: stream as Stream,
    with: (options) => createClient(connection, { ...defaults, ...options }),
  };
}

type Asked = {
  readonly text: string;
  readonly params: Parameters;
  readonly options: QueryOptions;
};

function toStatement(statement: unknown, rest: readonly unknown[]): Asked {
  if (isTemplate(statement)) {
    const { text, params } = renderTemplate(
      statement,
      rest as readonly (ParameterOrList | Fragment)[],
    );
    return { text, params, options: {} };
  }
  if (typeof statement !== 'string') throw new TypeError('the statement must be a string');
  const [params = [], options = {}] = rest as [Parameters?, QueryOptions?];
  checkNames(options);
  return { text: statement, params, options };
}

/** A guard that is misspelt (`readonly`) would guard nothing. */
function checkNames(options: QueryOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown === undefined) return;
  const known = Object.keys(optionNames).join(', ');
  throw new TypeError(`${JSON.stringify(unknown)} is no option; there are ${known}`);
}

type Told = Readonly<Record<string, unknown>>;

async function runQuery(
  connection: Connection,
  asked: Asked,
  options: QueryOptions,
): Promise<QueryResult<unknown>> {
  const sent = toSent(asked, options, 'application/json');
  const { told, begun } = await repeat(sent, options, async () => {
    const begun = await sendRequest(connection, sent);
    return { told: (await readJson(begun, sent)) as Told, begun };
  });
  const replayed = begun.response.headers.get('idempotency-replayed') === 'true';
  return decodeReply(told, layoutOf(options), replayed);
}

/** What is not sent in lines, as a CALL is not, comes whole. */
async function* runStream(
  connection: Connection,
  asked: Asked,
  options: QueryOptions,
): AsyncGenerator<unknown, StreamEnd, void> {
  const sent = toSent(asked, options, 'application/x-ndjson');
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (isInLines(begun)) return yield* readRows(begun, sent, layoutOf(options));
  const told = (await readJson(begun, sent)) as Told;
  const { rows, rowCount, truncated } = decodeReply(told, layoutOf(options), false);
  yield* rows;
  return { rowCount, truncated };
}

function toSent({ text, params }: Asked, options: QueryOptions, accept: string): Sent {
  return {
    path: '/v1/query',
    body: encodeQuery(text, params, options),
    accept,
    isReadOnly: options.readOnly === true,
    idempotencyKey: keyOf(options),
    signal: options.signal ?? null,
  };
}

function repeat<Reply>(
  { idempotencyKey, signal }: Sent,
  options: QueryOptions,
  attempt: () => Promise<Reply>,
): Promise<Reply> {
  return withRetries(retriesOf(options), idempotencyKey, signal, attempt);
}

/** Rows are always sent as arrays: that is the shortest, and what the gateway does fastest. */
function encodeQuery(text: string, params: Parameters, options: QueryOptions): string {
  const fields = JSON.stringify({
    sql: text,
    timeout_ms: options.timeoutMs,
    read_only: options.readOnly,
    max_rows: options.maxRows,
    json: options.json,
  });
  return `${fields.slice(0, -1)},"params":${encodeParameters(params)}}`;
}

function decodeReply(told: Told, layout: Layout, replayed: boolean): QueryResult<unknown> {
  const all = (told.results ?? [told]) as readonly Told[];
  const results = all.map((each) => decodeResult<unknown>(each, layout));
  const main = results.find(({ columns }) => columns.length > 0) ?? results.at(-1);
  if (main === undefined) throw new TypeError('a reply without results');
  const { request_id, section } = told;
  return { ...main, results, requestId: String(request_id), section: String(section), replayed };
}

function layoutOf({ rows, bigint }: QueryOptions): Layout {
  return { rows: rows ?? 'object', bigint: bigint ?? 'string' };
}

function retriesOf({ retry }: QueryOptions): RetryPolicy {
  return retry === false ? { attempts: 1, withinMs: 0 } : { ...defaultRetries, ...retry };
}

function keyOf({ idempotencyKey: key }: QueryOptions): string | null {
  if (key === undefined) return null;
  if (key === true) return newKey();
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
}

/** 128 random bits. Not randomUUID, which browsers hide from pages that came by plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Messages do not repeat the URL: a password may stand in it. */
function baseOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('url must be http://host:port or https://host');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError(
      'url must have no user, query or fragment; the token has a field of its own',
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

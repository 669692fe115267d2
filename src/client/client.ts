// The client of /v1: connects to a gateway by fetch, for Node, browsers and edge runtimes. Needs nothing else.
// Must not know anything of the gateway but its interface.
import {
  type Batch,
  type BatchResult,
  type BatchStatement,
  decodeBatch,
  type Expectation,
  encodeBatch,
} from './batch.ts';
import { DbhttpdError, type Outcome } from './error.ts';
import {
  type BatchOptions,
  batchNames,
  checkNames,
  encodeFields,
  keyOf,
  layoutOf,
  type QueryOptions,
  queryNames,
  retriesOf,
  type StreamOptions,
  streamNames,
} from './options.ts';
import { encodeParameters, type ParameterOrList, type Parameters } from './parameters.ts';
import {
  type AllResults,
  type Column,
  decodeResults,
  type StatementResult,
  type Told,
} from './results.ts';
import { type RetryPolicy, withRetries } from './retries.ts';
import { isInLines, readRows, type StreamEnd } from './row-stream.ts';
import { Seen } from './seen.ts';
import { type Fragment, isTemplate, renderTemplate, sql } from './template.ts';
import {
  type BegunReply,
  type Connection,
  noReplyOfOurs,
  readJson,
  type Sent,
  sendRequest,
} from './transport.ts';

export type {
  BatchOptions,
  BatchResult,
  BatchStatement,
  Column,
  Expectation,
  Fragment,
  Outcome,
  Parameters,
  QueryOptions,
  RetryPolicy,
  StatementResult,
  StreamEnd,
  StreamOptions,
};
export { DbhttpdError, Seen, sql };

/** What `query` resolves to. */
export type QueryResult<Row> = AllResults<Row> & {
  /** What the gateway's log calls the request. */
  readonly requestId: string;
  readonly section: string;
  /** Whether an earlier request with the same idempotency key had done it already. */
  readonly replayed: boolean;
  /** Whether the gateway has not kept the rows of the reply that it repeats: they were too many. */
  readonly rowsOmitted: boolean;
  /** Whether all that the statement did has been undone: it was a dry run. */
  readonly rolledBack: boolean;
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
    options?: StreamOptions,
  ): AsyncGenerator<Row, StreamEnd, void>;
};

/** A gateway's section, to be asked. It holds no connection: there is nothing to close. */
export type Client = {
  readonly query: Query;
  readonly stream: Stream;
  readonly batch: Batch;
  /** The same client with other options where a request says nothing. */
  readonly with: (options: QueryOptions) => Client;
};

/** What a gateway is reached by. */
export type ConnectOptions = Omit<QueryOptions, 'idempotencyKey'> & {
  /** `http://host:port`, also with a path before /v1 where a proxy wants one. */
  readonly url: string;
  readonly token?: string | undefined;
  /** The runtime's own where it is not given. */
  readonly fetch?: typeof fetch | undefined;
  /** A new key for each request that may write; a key by its name belongs to a single request. */
  readonly idempotencyKey?: true | null | undefined;
};

/** Creates a client; nothing is sent yet. Throws a TypeError for a URL, a token or an option that cannot be one. */
export function connect({ url, token, fetch: given, ...options }: ConnectOptions): Client {
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError('token must be visible ASCII characters');
  }
  if (typeof options.idempotencyKey === 'string') {
    throw new TypeError('idempotencyKey must be true here: a text is the key of one request');
  }
  // Some runtimes' fetch must not be called as a method of something else.
  const send: typeof fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  return createClient({ url: baseOf(url), token: token ?? null, fetch: send }, options);
}

function createClient(connection: Connection, defaults: QueryOptions): Client {
  checkNames(defaults, queryNames, 'option');
  const query = async (
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): Promise<QueryResult<unknown>> => {
    const asked = toStatement(statement, rest);
    const options = { ...defaults, ...asked.options };
    checkNames(options, queryNames, 'option');
    return await runQuery(connection, asked, options);
  };
  async function* stream(
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): AsyncGenerator<unknown, StreamEnd, void> {
    const asked = toStatement(statement, rest);
    const options = { ...defaults, ...asked.options };
    checkNames(options, streamNames, 'option of a stream');
    return yield* runStream(connection, asked, options);
  }
  const batch = async (
    statements: readonly BatchStatement[],
    asked: BatchOptions = {},
  ): Promise<BatchResult<readonly unknown[]>> => {
    const options = { ...defaults, ...asked };
    // A dry run that `with` asked for would be committed, since a batch has none.
    checkNames(options, batchNames, 'option of a batch');
    return await runBatch(connection, statements, options);
  };
  return {
    query: query as Query,
    stream: stream as Stream,
    batch: batch as Batch,
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
  return { text: statement, params, options };
}

async function runQuery(
  connection: Connection,
  asked: Asked,
  options: QueryOptions,
): Promise<QueryResult<unknown>> {
  const sent = toSent('/v1/query', encodeQuery(asked, options), options);
  const whole = await askWhole(connection, sent, options);
  const found = decodeResults<unknown>(whole.told, layoutOf(options));
  if (found === null) throw noReplyOfOurs(whole.begun.response, sent);
  return { ...found, ...whole.about, rolledBack: whole.told.rolled_back === true };
}

async function runBatch(
  connection: Connection,
  statements: readonly BatchStatement[],
  options: BatchOptions,
): Promise<BatchResult<readonly unknown[]>> {
  const sent = toSent('/v1/batch', encodeBatch(statements, options), options);
  const whole = await askWhole(connection, sent, options);
  const found = decodeBatch(whole.told, statements.length, layoutOf(options));
  if (found === null) throw noReplyOfOurs(whole.begun.response, sent);
  return { ...found, ...whole.about };
}

/** What is not sent in lines, as a CALL is not, comes whole. */
async function* runStream(
  connection: Connection,
  asked: Asked,
  { idempotencyKey, ...options }: StreamOptions,
): AsyncGenerator<unknown, StreamEnd, void> {
  // A stream is for what reads, which has no key unless the caller gives it one.
  const keyed = idempotencyKey === true ? options : { ...options, idempotencyKey };
  const body = encodeQuery(asked, options);
  const sent = { ...toSent('/v1/query', body, keyed), accept: 'application/x-ndjson' };
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (isInLines(begun)) return yield* readRows(begun, sent, layoutOf(options));
  const found = decodeResults<unknown>((await readJson(begun, sent)) as Told, layoutOf(options));
  if (found === null) throw noReplyOfOurs(begun.response, sent);
  yield* found.rows;
  return { rowCount: found.rowCount, truncated: found.truncated };
}

function toSent(path: string, body: string, options: QueryOptions): Sent {
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

/** What every reply in JSON says of its request. */
type About = Pick<QueryResult<unknown>, 'requestId' | 'section' | 'replayed' | 'rowsOmitted'>;

type Whole = { readonly told: Told; readonly about: About; readonly begun: BegunReply };

/** A reply in JSON, sent again as often as it may be. Throws a DbhttpdError. */
function askWhole(connection: Connection, sent: Sent, options: QueryOptions): Promise<Whole> {
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

function repeat<Reply>(
  { idempotencyKey, signal }: Sent,
  options: QueryOptions,
  attempt: () => Promise<Reply>,
): Promise<Reply> {
  return withRetries(retriesOf(options), idempotencyKey, signal, attempt);
}

/** Rows are always sent as arrays: that is the shortest, and what the gateway does fastest. */
function encodeQuery({ text, params }: Asked, options: QueryOptions): string {
  const fields = encodeFields({
    sql: text,
    timeout_ms: options.timeoutMs,
    read_only: options.readOnly,
    max_rows: options.maxRows,
    max_affected: options.maxAffected,
    dry_run: options.dryRun,
    json: options.json,
  });
  return `${fields.slice(0, -1)},"params":${encodeParameters(params)}}`;
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

// The client of /v1: connects to a gateway by fetch, for Node, browsers and edge runtimes. Needs nothing else.
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
  createNamed,
  type HeldNamedFunctions,
  type ModeOf,
  type NamedBatchResult,
  type NamedFunction,
  type NamedFunctions,
  type NamedResult,
  type NamedRows,
  type NamedStatement,
  type NamedStatements,
  type NamedStep,
} from './named.ts';
import {
  allNames,
  type BatchOptions,
  type BigintMode,
  batchNames,
  type CsvOptions,
  checkNames,
  csvNames,
  type HeldNamedOptions,
  type InnerOptions,
  layoutOf,
  type NamedOptions,
  type NamedStreamOptions,
  type OptionsOfAll,
  type QueryOptions,
  queryNames,
  type RetryPolicy,
  type StreamOptions,
  streamNames,
  type TransactionOptions,
  transactionNames,
} from './options.ts';
import { askWhole, cancelRequests, toSent } from './request.ts';
import type { Column, Progress, StatementResult, StreamEnd, Warning } from './results.ts';
import { Seen } from './seen.ts';
import { type Fragment, type Parameters, type Sql, sql } from './sql.ts';
import {
  type Csv,
  exactlyOneRow,
  type MaybeOne,
  type One,
  onlyRow,
  type Query,
  type QueryResult,
  runCsv,
  runQuery,
  runStream,
  type Stream,
  toStatement,
} from './statement.ts';
import { type RunInTransaction, runTransaction, type Transaction } from './transaction.ts';
import { type Connection, noReplyOfOurs } from './transport.ts';

export type {
  BatchOptions,
  BatchResult,
  BatchStatement,
  BigintMode,
  Column,
  Csv,
  CsvOptions,
  Expectation,
  Fragment,
  HeldNamedFunctions,
  HeldNamedOptions,
  InnerOptions,
  MaybeOne,
  NamedBatchResult,
  NamedFunction,
  NamedFunctions,
  NamedOptions,
  NamedResult,
  NamedRows,
  NamedStatement,
  NamedStatements,
  NamedStep,
  NamedStreamOptions,
  One,
  OptionsOfAll,
  Outcome,
  Parameters,
  Progress,
  Query,
  QueryOptions,
  QueryResult,
  RetryPolicy,
  RunInTransaction,
  Sql,
  StatementResult,
  Stream,
  StreamEnd,
  StreamOptions,
  Transaction,
  TransactionOptions,
  Warning,
};
export { DbhttpdError, Seen, sql };

/** Sends requests to a gateway. It holds no connection, so there is nothing to close. */
export type Client<
  Named extends NamedStatements<Named> = Record<never, never>,
  Mode extends BigintMode = 'string',
> = {
  readonly query: Query;
  readonly one: One;
  readonly maybeOne: MaybeOne;
  readonly stream: Stream;
  readonly csv: Csv;
  readonly batch: Batch<Mode>;
  readonly transaction: RunInTransaction<Named, Mode>;
  /** A function for each named statement. Their types are those of `connect<Named>`. */
  readonly named: NamedFunctions<Named, Mode>;
  /**
   * Ends the requests that run with this `requestId`, by any client: each fails with `KILLED`. Resolves to false if there is none, or it
   * is over. One that the client is about to send, or to send again, is not there yet.
   */
  readonly cancel: (requestId: string) => Promise<boolean>;
  /** The same client with other defaults. */
  readonly with: <const Chosen extends BigintMode | undefined = Mode>(
    options: Omit<OptionsOfAll, 'bigint'> & { readonly bigint?: Chosen },
  ) => Client<Named, ModeOf<Chosen>>;
};

/** How the client reaches a gateway, and the defaults of its requests. */
export type ConnectOptions = Omit<OptionsOfAll, 'idempotencyKey' | 'requestId'> & {
  /** `http://host:port`, with a path before /v1 if a proxy needs one. */
  readonly url: string;
  readonly token?: string | undefined;
  /** The runtime's own by default. */
  readonly fetch?: typeof fetch | undefined;
  /** `true`: a new key for each request that may write. A given key belongs to a single request. */
  readonly idempotencyKey?: true | null | undefined;
};

const { requestId: _ofOneRequest, ...defaultNames } = allNames;
const connectNames: Readonly<Record<keyof ConnectOptions, true>> = {
  url: true,
  token: true,
  fetch: true,
  ...defaultNames,
};

/**
 * Creates a client, without sending anything. `Named` is the type that `dbhttpd --types` prints. Throws a TypeError for an invalid URL,
 * token or option.
 */
export function connect<Named extends NamedStatements<Named> = Record<never, never>>(
  asked: ConnectOptions & { readonly bigint: 'bigint' },
): Client<Named, 'bigint'>;
export function connect<Named extends NamedStatements<Named> = Record<never, never>>(
  asked: ConnectOptions & { readonly bigint?: 'string' | undefined },
): Client<Named>;
export function connect<Named extends NamedStatements<Named> = Record<never, never>>(
  asked: ConnectOptions,
): Client<Named, BigintMode>;
export function connect(asked: ConnectOptions): Client<Record<never, never>, BigintMode> {
  const { url, token, fetch: given, ...options } = asked;
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError('token must be visible ASCII characters');
  }
  if (typeof options.idempotencyKey === 'string') {
    throw new TypeError(
      'idempotencyKey must be true here: a string is the key of a single request',
    );
  }
  // In some runtimes, fetch must not be called as a method of another object.
  const send: typeof fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  const connection = { url: baseOf(url), token: token ?? null, fetch: send };
  checkNames(asked, connectNames, 'option');
  return createClient(connection, options);
}

function createClient(
  connection: Connection,
  defaults: OptionsOfAll,
): Client<Record<never, never>, BigintMode> {
  checkNames(defaults, allNames, 'option');
  const query = async (
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): Promise<QueryResult<unknown>> => {
    const asked = toStatement(statement, rest);
    const options = { ...defaults, ...asked.options };
    checkNames(options, queryNames, 'option of a query');
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
  const one = async (statement: string | TemplateStringsArray, ...rest: readonly unknown[]) =>
    exactlyOneRow(await query(statement, ...rest));
  const maybeOne = async (statement: string | TemplateStringsArray, ...rest: readonly unknown[]) =>
    onlyRow(await query(statement, ...rest));
  async function* csv(
    statement: string | TemplateStringsArray,
    ...rest: readonly unknown[]
  ): AsyncGenerator<string, void, void> {
    const asked = toStatement(statement, rest);
    const options = { ...defaults, ...asked.options };
    checkNames(options, csvNames, 'option of CSV');
    return yield* runCsv(connection, asked, options);
  }
  const batch = async (
    statements: readonly BatchStatement[],
    asked: BatchOptions = {},
  ): Promise<BatchResult<readonly unknown[]>> => {
    const options = { ...defaults, ...asked };
    // Batches have no dry run: a default from `with` would be ignored, and the batch committed.
    checkNames(options, batchNames, 'option of a batch');
    return await runBatch(connection, statements, options);
  };
  const transaction: RunInTransaction = async (work, asked = {}) => {
    const { idempotencyKey, ...chosen } = { ...defaults, ...asked };
    // Null means no key. A key would promise that the whole transaction is executed once.
    const options = idempotencyKey === null ? chosen : { ...chosen, idempotencyKey };
    checkNames(options, transactionNames, 'option of a transaction');
    return await runTransaction(connection, work, options);
  };
  return {
    query: query as Query,
    one: one as One,
    maybeOne: maybeOne as MaybeOne,
    stream: stream as Stream,
    csv: csv as Csv,
    batch: batch as Batch<BigintMode>,
    transaction: transaction as RunInTransaction<Record<never, never>, BigintMode>,
    named: createNamed(connection, defaults) as NamedFunctions<Record<never, never>, BigintMode>,
    cancel: async (requestId) => await cancelRequests(connection, requestId, defaults),
    with: ((options: OptionsOfAll) =>
      createClient(connection, { ...defaults, ...options })) as Client['with'],
  };
}

async function runBatch(
  connection: Connection,
  statements: readonly BatchStatement[],
  options: BatchOptions,
): Promise<BatchResult<readonly unknown[]>> {
  const sent = toSent('/v1/batch', encodeBatch(statements, options), options);
  const whole = await askWhole(connection, sent, options);
  const found = decodeBatch(whole.json, statements.length, layoutOf(options));
  if (found === null) throw noReplyOfOurs(whole.begun, sent);
  return { ...found, ...whole.about };
}

/** Messages do not repeat the URL, since it may contain a password. */
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

// One statement: how a caller asks for it, how it is sent, and its result, at once or row by row.
import { encodeFields, layoutOf, type QueryOptions, type StreamOptions } from './options.ts';
import { type About, askWhole, repeat, toSent } from './request.ts';
import { type AllResults, decodeResults, isInLines, readRows, type StreamEnd } from './results.ts';
import {
  encodeParameters,
  type Fragment,
  isTemplate,
  type ParameterOrList,
  type Parameters,
  renderTemplate,
} from './sql.ts';
import { type Connection, noReplyOfOurs, readJson, sendRequest } from './transport.ts';

/** The result of `query`. */
export type QueryResult<Row> = AllResults<Row> &
  About & {
    /** Whether the gateway undid the statement, since it was a dry run. */
    readonly rolledBack: boolean;
  };

/** One statement, as a tagged template whose values become parameters, or as text with its parameters. */
export type Query<Options = QueryOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly (ParameterOrList | Fragment)[]
  ): Promise<QueryResult<Row>>;
  <Row = Record<string, unknown>>(
    sql: string,
    params?: Parameters,
    options?: Options,
  ): Promise<QueryResult<Row>>;
};

/** The same, row by row. The client sends nothing before the caller asks for the first row. Leaving the loop ends the statement. */
export type Stream<Options = StreamOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly (ParameterOrList | Fragment)[]
  ): AsyncGenerator<Row, StreamEnd, void>;
  <Row = Record<string, unknown>>(
    sql: string,
    params?: Parameters,
    options?: Options,
  ): AsyncGenerator<Row, StreamEnd, void>;
};

/** A statement with its parameters and options. */
export type Asked = {
  readonly text: string;
  readonly params: Parameters;
  readonly options: QueryOptions;
};

/** Reads the arguments of a call, as a tag or with text. Throws a TypeError. */
export function toStatement(statement: unknown, rest: readonly unknown[]): Asked {
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

/** Runs a statement and returns its result. @param transaction the token of its transaction; null: none */
export async function runQuery(
  connection: Connection,
  asked: Asked,
  options: QueryOptions,
  transaction: string | null = null,
): Promise<QueryResult<unknown>> {
  const sent = toSent('/v1/query', encodeQuery(asked, options, transaction), options);
  const whole = await askWhole(connection, sent, options);
  const found = decodeResults<unknown>(whole.json, layoutOf(options));
  if (found === null) throw noReplyOfOurs(whole.begun.response, sent);
  return { ...found, ...whole.about, rolledBack: whole.json.rolled_back === true };
}

/** Yields the rows one by one. A reply that is not in lines, such as that of a CALL, arrives whole. @param transaction as for `runQuery` */
export async function* runStream(
  connection: Connection,
  asked: Asked,
  { idempotencyKey, ...options }: StreamOptions,
  transaction: string | null = null,
): AsyncGenerator<unknown, StreamEnd, void> {
  // Streams are for reads, which have no key unless the caller gives one.
  const keyed = idempotencyKey === true ? options : { ...options, idempotencyKey };
  const body = encodeQuery(asked, options, transaction);
  const sent = { ...toSent('/v1/query', body, keyed), accept: 'application/x-ndjson' };
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (isInLines(begun)) return yield* readRows(begun, sent, layoutOf(options));
  const found = decodeResults<unknown>(await readJson(begun, sent), layoutOf(options));
  if (found === null) throw noReplyOfOurs(begun.response, sent);
  yield* found.rows;
  return { rowCount: found.rowCount, truncated: found.truncated };
}

/** Asks for rows as arrays, which are the shortest, and the fastest for the gateway. */
function encodeQuery(
  { text, params }: Asked,
  options: QueryOptions,
  transaction: string | null,
): string {
  const fields = encodeFields({
    sql: text,
    transaction: transaction ?? undefined,
    timeout_ms: options.timeoutMs,
    read_only: options.readOnly,
    max_rows: options.maxRows,
    max_affected: options.maxAffected,
    dry_run: options.dryRun,
    json: options.json,
  });
  return `${fields.slice(0, -1)},"params":${encodeParameters(params)}}`;
}

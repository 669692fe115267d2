// One statement: as it is asked for, as it is sent, and what it has answered, at once or row by row.
import { encodeFields, layoutOf, type QueryOptions, type StreamOptions } from './options.ts';
import { type About, askWhole, repeat, toSent } from './request.ts';
import {
  type AllResults,
  decodeResults,
  isInLines,
  readRows,
  type StreamEnd,
  type Told,
} from './results.ts';
import {
  encodeParameters,
  type Fragment,
  isTemplate,
  type ParameterOrList,
  type Parameters,
  renderTemplate,
} from './sql.ts';
import { type Connection, noReplyOfOurs, readJson, sendRequest } from './transport.ts';

/** What `query` resolves to. */
export type QueryResult<Row> = AllResults<Row> &
  About & {
    /** Whether all that the statement did has been undone: it was a dry run. */
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

/** The same, row by row. Nothing is sent before the first row is asked for; who leaves the loop ends the statement. */
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

/** A statement that somebody asks for. */
export type Asked = {
  readonly text: string;
  readonly params: Parameters;
  readonly options: QueryOptions;
};

/** What was called: as a tag, or with text. Throws a TypeError. */
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

/** Its results. @param transaction the token of the one that it runs in; null: in none */
export async function runQuery(
  connection: Connection,
  asked: Asked,
  options: QueryOptions,
  transaction: string | null = null,
): Promise<QueryResult<unknown>> {
  const sent = toSent('/v1/query', encodeQuery(asked, options, transaction), options);
  const whole = await askWhole(connection, sent, options);
  const found = decodeResults<unknown>(whole.told, layoutOf(options));
  if (found === null) throw noReplyOfOurs(whole.begun.response, sent);
  return { ...found, ...whole.about, rolledBack: whole.told.rolled_back === true };
}

/** Its rows, one by one. What is not sent in lines, as a CALL is not, comes whole. @param transaction as for `runQuery` */
export async function* runStream(
  connection: Connection,
  asked: Asked,
  { idempotencyKey, ...options }: StreamOptions,
  transaction: string | null = null,
): AsyncGenerator<unknown, StreamEnd, void> {
  // A stream is for what reads, which has no key unless the caller gives it one.
  const keyed = idempotencyKey === true ? options : { ...options, idempotencyKey };
  const body = encodeQuery(asked, options, transaction);
  const sent = { ...toSent('/v1/query', body, keyed), accept: 'application/x-ndjson' };
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (isInLines(begun)) return yield* readRows(begun, sent, layoutOf(options));
  const found = decodeResults<unknown>((await readJson(begun, sent)) as Told, layoutOf(options));
  if (found === null) throw noReplyOfOurs(begun.response, sent);
  yield* found.rows;
  return { rowCount: found.rowCount, truncated: found.truncated };
}

/** Rows are always sent as arrays: that is the shortest, and what the gateway does fastest. */
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

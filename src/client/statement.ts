// One statement: how a caller asks for it, how it is sent, and its result, at once or row by row.
import { DbhttpdError } from './error.ts';
import {
  type CsvOptions,
  encodeFields,
  layoutOf,
  type OptionsOfAll,
  type QueryOptions,
  type StreamOptions,
} from './options.ts';
import { type About, askWhole, repeat, toSent } from './request.ts';
import {
  type AllResults,
  decodeResults,
  hasType,
  readRows,
  readTexts,
  type StreamEnd,
} from './results.ts';
import {
  encodeParameters,
  isTemplate,
  type Parameters,
  renderTemplate,
  type Value,
} from './sql.ts';
import { type Connection, noReplyOfOurs, readJson, type Sent, sendRequest } from './transport.ts';

/** The result of `query`. */
export type QueryResult<Row> = AllResults<Row> &
  About & {
    /** Whether the gateway undid the statement, since it was a dry run. */
    readonly rolledBack: boolean;
  };

/**
 * One statement, as a tagged template whose values become parameters, or as text with its parameters. A text needs its parameters, `[]` if
 * it has none: otherwise a template in parentheses, whose values are part of the text already, would be a valid call.
 */
export type Query<Options = QueryOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Promise<QueryResult<Row>>;
  <Row = Record<string, unknown>>(
    sql: string,
    params: Parameters,
    options?: Options,
  ): Promise<QueryResult<Row>>;
};

/** The single row of a statement: a failure with `NO_ROW` or `NOT_ONE_ROW` if there is none, or more than one. */
export type One<Options = QueryOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Promise<Row>;
  <Row = Record<string, unknown>>(sql: string, params: Parameters, options?: Options): Promise<Row>;
};

/** The same, and null if there is no row. */
export type MaybeOne<Options = QueryOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Promise<Row | null>;
  <Row = Record<string, unknown>>(
    sql: string,
    params: Parameters,
    options?: Options,
  ): Promise<Row | null>;
};

/** The rows as CSV, in parts of any length as they arrive. Leaving the loop ends the statement. */
export type Csv<Options = CsvOptions> = {
  (strings: TemplateStringsArray, ...values: readonly Value[]): AsyncGenerator<string, void, void>;
  (sql: string, params: Parameters, options?: Options): AsyncGenerator<string, void, void>;
};

/** The same, row by row. The client sends nothing before the caller asks for the first row. Leaving the loop ends the statement. */
export type Stream<Options = StreamOptions> = {
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): AsyncGenerator<Row, StreamEnd, void>;
  <Row = Record<string, unknown>>(
    sql: string,
    params: Parameters,
    options?: Options,
  ): AsyncGenerator<Row, StreamEnd, void>;
};

/** A statement with its parameters and options. */
export type Asked = {
  readonly text: string;
  readonly params: Parameters;
  readonly options: OptionsOfAll;
};

/** Reads the arguments of a call, as a tag or with text. Throws a TypeError. */
export function toStatement(statement: unknown, rest: readonly unknown[]): Asked {
  if (isTemplate(statement)) {
    const { text, params } = renderTemplate(statement, ...(rest as readonly Value[]));
    return { text, params, options: {} };
  }
  if (typeof statement !== 'string') throw new TypeError('the statement must be a string');
  const [params, options = {}] = rest as [unknown, OptionsOfAll?];
  if (typeof params !== 'object' || params === null) throw new TypeError(noParameters);
  return { text: statement, params: params as Parameters, options };
}

const noParameters =
  'a statement as text needs its parameters, [] if it has none; if this was a template, write it without parentheses, as in query`…`';

/** The only row; null if there is none. Throws a DbhttpdError if there are several, or if the gateway has not kept it for a repetition. */
export function onlyRow(result: QueryResult<unknown>): unknown {
  const { rows, rowCount, rowsOmitted, requestId } = result;
  const count = rowsOmitted ? rowCount : rows.length;
  if (count > 1) {
    throw wrongCount('NOT_ONE_ROW', `The statement returned ${count} rows`, requestId);
  }
  if (count > rows.length) throw rowOmitted(requestId, null);
  return rows[0] ?? null;
}

/** The only row. Throws as `onlyRow` does, and if there is none. */
export function exactlyOneRow(result: QueryResult<unknown>): unknown {
  const row = onlyRow(result);
  if (row === null) throw wrongCount('NO_ROW', 'The statement returned no row', result.requestId);
  return row;
}

function wrongCount(code: string, what: string, requestId: string): DbhttpdError {
  const facts = { code, outcome: 'unknown', retryable: false, requestId } as const;
  return new DbhttpdError(`${what}, and one was expected. The statement was executed.`, facts);
}

/** The error of a repetition whose only row was too large for the gateway to keep. @param status the reply's; null: it is not known */
export function rowOmitted(requestId: string, status: number | null): DbhttpdError {
  return new DbhttpdError(
    'An earlier request with this idempotency key did this. Its row was too large to be kept.',
    { code: 'ROWS_OMITTED', outcome: 'unknown', retryable: false, requestId, status },
  );
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
  if (found === null) throw noReplyOfOurs(whole.begun, sent);
  return { ...found, ...whole.about, rolledBack: whole.json.rolled_back === true };
}

/** Yields the rows one by one. @param transaction as for `runQuery` */
export async function* runStream(
  connection: Connection,
  asked: Asked,
  { idempotencyKey, ...options }: StreamOptions,
  transaction: string | null = null,
): AsyncGenerator<unknown, StreamEnd, void> {
  // Streams are for reads, which have no key unless the caller gives one.
  const keyed = idempotencyKey === true ? options : { ...options, idempotencyKey };
  const sent = toSent('/v1/query', encodeQuery(asked, options, transaction), keyed);
  return yield* streamRows(connection, sent, options);
}

/** Yields the rows of a reply one by one. One that is not in lines, such as that of a CALL, arrives whole. */
export async function* streamRows(
  connection: Connection,
  request: Sent,
  options: StreamOptions,
): AsyncGenerator<unknown, StreamEnd, void> {
  const sent = { ...request, accept: 'application/x-ndjson' };
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (hasType(begun, 'application/x-ndjson')) {
    return yield* readRows(begun, sent, layoutOf(options), options.onProgress);
  }
  const found = decodeResults<unknown>(await readJson(begun, sent), layoutOf(options));
  if (found === null) throw noReplyOfOurs(begun, sent);
  yield* found.rows;
  const { rowCount, truncated, warningList } = found;
  return { rowCount, truncated, warningList };
}

/** Yields the rows as CSV. */
export async function* runCsv(
  connection: Connection,
  asked: Asked,
  { idempotencyKey, ...options }: CsvOptions,
): AsyncGenerator<string, void, void> {
  const keyed = idempotencyKey === true ? options : { ...options, idempotencyKey };
  yield* streamCsv(
    connection,
    toSent('/v1/query', encodeQuery(asked, options, null), keyed),
    options,
  );
}

/** Yields the text of a reply in CSV as it arrives. Throws a DbhttpdError if it is cut, or is not CSV. */
export async function* streamCsv(
  connection: Connection,
  request: Sent,
  options: CsvOptions,
): AsyncGenerator<string, void, void> {
  const sent = { ...request, accept: 'text/csv' };
  const begun = await repeat(sent, options, () => sendRequest(connection, sent));
  if (!hasType(begun, 'text/csv')) throw noReplyOfOurs(begun, sent);
  let bytes = 0;
  for await (const part of readTexts(begun, sent)) {
    bytes += part.bytes;
    options.onProgress?.({ rows: null, bytes });
    if (part.text !== '') yield part.text;
  }
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
    // The gateway knows a transaction's section by its token.
    section: transaction === null ? options.section : undefined,
    timeout_ms: options.timeoutMs,
    read_only: options.readOnly,
    max_rows: options.maxRows,
    max_affected: options.maxAffected,
    dry_run: options.dryRun,
    show_warnings: options.showWarnings,
    json: options.json,
  });
  return `${fields.slice(0, -1)},"params":${encodeParameters(params)}}`;
}

// Results in the caller's layout: whole, or row by row from a reply in lines of JSON. A reply that is cut is an error.
import { DbhttpdError } from './error.ts';
import {
  type BegunReply,
  cutBefore,
  type JsonObject,
  noReplyOfOurs,
  problemOf,
  type Sent,
} from './transport.ts';

/** The caller's choice of how rows and values look. */
export type Layout = {
  /** Objects by column names, or arrays in the order of the columns. */
  readonly rows: 'object' | 'array';
  /** The type of BIGINT columns and insert ids; both are exact. */
  readonly bigint: 'string' | 'bigint';
};

/** A column as the gateway describes it. */
export type Column = {
  readonly name: string;
  /** SQL's word: `BIGINT`, `DECIMAL`, `VARCHAR`, `DATETIME` … */
  readonly type: string;
  readonly nullable: boolean;
  readonly unsigned?: boolean;
  readonly precision?: number;
  readonly scale?: number;
  /** Set if values are bytes. */
  readonly encoding?: 'base64';
};

/** One of the server's warnings about a statement. */
export type Warning = {
  readonly level: 'Note' | 'Warning' | 'Error';
  /** MySQL's name of it: `WARN_DATA_TRUNCATED`. */
  readonly code: string;
  readonly errno: number;
  readonly message: string;
};

/** The result of one statement: rows, or the numbers of a write. */
export type StatementResult<Row> = {
  readonly columns: readonly Column[];
  /** Empty if the statement has no columns. */
  readonly rows: readonly Row[];
  readonly rowCount: number;
  /** Whether there are more rows than `maxRows`. */
  readonly truncated: boolean;
  /** 0 if the statement has columns. */
  readonly affectedRows: number;
  /** The first AUTO_INCREMENT value that was generated; null: none. */
  readonly insertId: string | bigint | null;
  /** The number of the server's warnings. */
  readonly warnings: number;
};

/** The main result of one statement: the first with rows, or else the last. `results` has all results of a CALL. */
export type AllResults<Row> = StatementResult<Row> & {
  readonly results: readonly StatementResult<Row>[];
  /** Up to ten warnings; empty without `showWarnings`. */
  readonly warningList: readonly Warning[];
};

/**
 * Decodes the results of a statement; null if they are not a gateway's. Throws a DbhttpdError if two columns of an object have the same
 * name.
 */
export function decodeResults<Row>(json: JsonObject, layout: Layout): AllResults<Row> | null {
  const all = (json.results ?? [json]) as readonly JsonObject[];
  if (!Array.isArray(all) || !all.every(isResult)) return null;
  const results = all.map((each) => decodeResult<Row>(each, layout));
  const main = results.find(({ columns }) => columns.length > 0) ?? results.at(-1);
  return main === undefined ? null : { ...main, results, warningList: warningsOf(json) };
}

function warningsOf({
  warning_list: list,
}: {
  readonly warning_list?: unknown;
}): readonly Warning[] {
  return (list ?? []) as readonly Warning[];
}

function isResult(json: JsonObject | null): boolean {
  return Array.isArray(json?.columns) || typeof json?.affected_rows === 'number';
}

/** The rows are arrays, or have the caller's layout already. */
function decodeResult<Row>(json: JsonObject, layout: Layout): StatementResult<Row> {
  const columns = (json.columns ?? []) as readonly Column[];
  const given = (json.rows ?? []) as readonly object[];
  const rows = given.every(Array.isArray)
    ? given.map(createRowDecoder<Row>(columns, layout))
    : given.map(createObjectDecoder<Row>(columns, layout));
  const insertId = (json.insert_id ?? null) as string | null;
  return {
    columns,
    rows,
    rowCount: (json.row_count ?? 0) as number,
    truncated: json.truncated === true,
    affectedRows: (json.affected_rows ?? 0) as number,
    insertId: insertId !== null && layout.bigint === 'bigint' ? BigInt(insertId) : insertId,
    warnings: (json.warnings ?? 0) as number,
  };
}

/** Creates a decoder from arrays to rows in the caller's layout. Throws as `decodeResults` does. */
export function createRowDecoder<Row>(
  columns: readonly Column[],
  layout: Layout,
): (cells: readonly unknown[]) => Row {
  const names = columns.map(({ name }) => name);
  const isBig = columns.map(({ type }) => type === 'BIGINT' && layout.bigint === 'bigint');
  const decodeCell = (cell: unknown, index: number): unknown =>
    isBig[index] === true && typeof cell === 'string' ? BigInt(cell) : cell;
  if (layout.rows === 'array') return (cells) => cells.map(decodeCell) as Row;
  refuseDuplicates(names);
  // Not by assignment: the name of a column may be __proto__.
  return (cells) =>
    Object.fromEntries(cells.map((cell, index) => [names[index], decodeCell(cell, index)])) as Row;
}

/** The same for rows that are objects already: their names are distinct. */
function createObjectDecoder<Row>(
  columns: readonly Column[],
  { bigint }: Layout,
): (row: object) => Row {
  const big = new Set(columns.filter(({ type }) => type === 'BIGINT').map(({ name }) => name));
  if (bigint === 'string' || big.size === 0) return (row) => row as Row;
  const decodeCell = (name: string, cell: unknown): unknown =>
    big.has(name) && typeof cell === 'string' ? BigInt(cell) : cell;
  return (row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, cell]) => [name, decodeCell(name, cell)]),
    ) as Row;
}

function refuseDuplicates(names: readonly string[]): void {
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  if (twice.length === 0) return;
  const shown = [...new Set(twice)].map((name) => JSON.stringify(name)).join(', ');
  throw new DbhttpdError(
    `Several columns have the name ${shown}: rename them with AS, or ask for rows as arrays. The statement was executed.`,
    { code: 'DUPLICATE_COLUMNS', outcome: 'unknown', retryable: false },
  );
}

/** The end of a stream. */
export type StreamEnd = {
  readonly rowCount: number;
  readonly truncated: boolean;
  /** Up to ten warnings; empty without `showWarnings`. */
  readonly warningList: readonly Warning[];
};

/** A line that is no row: the first or the last. */
type Marker = {
  readonly columns?: readonly Column[];
  readonly end?: {
    readonly row_count: number;
    readonly truncated: boolean;
    readonly warning_list?: readonly Warning[];
  };
  readonly error?: JsonObject & { readonly status?: number };
};

/** How much of a reply has arrived. */
export type Progress = {
  /** The number of rows, including those that the caller has not taken yet; null for CSV. */
  readonly rows: number | null;
  /** The number of bytes, after decompression. */
  readonly bytes: number;
};

/** Whether a reply has a media type. */
export function hasType({ response }: BegunReply, type: string): boolean {
  return response.headers.get('content-type')?.startsWith(type) === true;
}

/** Yields the rows, and returns their end. A caller that stops early ends the statement. Throws a DbhttpdError if the last line is missing. */
export async function* readRows<Row>(
  begun: BegunReply,
  sent: Sent,
  layout: Layout,
  onProgress: ((progress: Progress) => void) | undefined,
): AsyncGenerator<Row, StreamEnd, void> {
  let rows = 0;
  let decode: ((cells: readonly unknown[]) => Row) | null = null;
  for await (const { lines, bytes } of readLines(begun, sent)) {
    if (onProgress !== undefined) {
      // Every line of a row is an array, and no other line is.
      rows += lines.filter((line) => line.startsWith('[')).length;
      onProgress({ rows, bytes });
    }
    for (const line of lines) {
      const parsed = parseLine(line, begun, sent);
      if (Array.isArray(parsed)) {
        if (decode === null) throw noReplyOfOurs(begun, sent);
        yield decode(parsed);
        continue;
      }
      const { columns, end, error } = parsed as Marker;
      if (columns !== undefined) decode = createRowDecoder<Row>(columns, layout);
      else if (end !== undefined) return endOf(end);
      else throw failureOf(error, begun, sent);
    }
  }
  throw cutBefore('its last line', begun, sent, null);
}

function endOf(end: NonNullable<Marker['end']>): StreamEnd {
  return { rowCount: end.row_count, truncated: end.truncated, warningList: warningsOf(end) };
}

function parseLine(line: string, begun: BegunReply, sent: Sent): object {
  try {
    return JSON.parse(line) as object;
  } catch {
    throw noReplyOfOurs(begun, sent);
  }
}

function failureOf(error: Marker['error'], begun: BegunReply, sent: Sent): DbhttpdError {
  const facts = error === undefined ? null : problemOf(error);
  if (facts === null) return noReplyOfOurs(begun, sent);
  const { message, ...rest } = facts;
  return new DbhttpdError(message, { ...rest, status: error?.status ?? null });
}

/** Yields the lines of a body as they arrive, several at once. A line without its end does not count. */
async function* readLines(
  begun: BegunReply,
  sent: Sent,
): AsyncGenerator<{ readonly lines: readonly string[]; readonly bytes: number }, void, void> {
  let rest = '';
  let bytes = 0;
  for await (const part of readTexts(begun, sent)) {
    bytes += part.bytes;
    // Only new text is searched: a row may arrive in thousands of pieces.
    const [first = '', ...others] = part.text.split('\n');
    rest += first;
    const lines = others.length === 0 ? [] : [rest, ...others];
    if (others.length > 0) rest = lines.pop() ?? '';
    yield { lines, bytes };
  }
}

/** Yields the text of a body as it arrives. A caller that stops early ends the request. Throws a DbhttpdError if the body is cut. */
export async function* readTexts(
  begun: BegunReply,
  sent: Sent,
): AsyncGenerator<{ readonly text: string; readonly bytes: number }, void, void> {
  const { body } = begun.response;
  if (body === null) throw cutBefore('its end', begun, sent, null);
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const read = await reader.read().catch((cause: unknown) => {
        throw cutBefore('its end', begun, sent, cause);
      });
      if (read.done) return;
      yield { text: decoder.decode(read.value, { stream: true }), bytes: read.value.length };
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

// Results in the caller's layout: whole, or row by row from a reply in lines of JSON. A reply that is cut is an error.
import { DbhttpdError } from './error.ts';
import { type BegunReply, interrupted, noReplyOfOurs, problemOf, type Sent } from './transport.ts';

/** How values are to look. */
export type Layout = {
  /** Objects by column names, or arrays in the order of the columns. */
  readonly rows: 'object' | 'array';
  /** BIGINT columns and insert ids: exact either way. */
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
  /** Where values are bytes. */
  readonly encoding?: 'base64';
};

/** What one statement has answered: rows, or what it has changed. */
export type StatementResult<Row> = {
  readonly columns: readonly Column[];
  /** Empty where the statement has no columns. */
  readonly rows: readonly Row[];
  readonly rowCount: number;
  /** Whether there would have been more than `maxRows`. */
  readonly truncated: boolean;
  /** 0 where the statement has columns. */
  readonly affectedRows: number;
  /** The first AUTO_INCREMENT value that was made; null: none. */
  readonly insertId: string | bigint | null;
  readonly warnings: number;
};

/** What one statement has answered: its first result that has rows, else the last one; of a CALL all stand in `results`. */
export type AllResults<Row> = StatementResult<Row> & {
  readonly results: readonly StatementResult<Row>[];
};

/** An object of the gateway's JSON, before anything of it is believed. */
export type Told = Readonly<Record<string, unknown>>;

/**
 * Makes a caller's results of a statement's; null: this is not what a gateway says of one. Throws a DbhttpdError where two
 * columns of an object would have one name.
 */
export function decodeResults<Row>(told: Told, layout: Layout): AllResults<Row> | null {
  const all = (told.results ?? [told]) as readonly Told[];
  if (!Array.isArray(all) || !all.every(isResult)) return null;
  const results = all.map((each) => decodeResult<Row>(each, layout));
  const main = results.find(({ columns }) => columns.length > 0) ?? results.at(-1);
  return main === undefined ? null : { ...main, results };
}

function isResult(told: Told | null): boolean {
  return Array.isArray(told?.columns) || typeof told?.affected_rows === 'number';
}

/** Rows have come as arrays, or as the caller wants them. */
function decodeResult<Row>(told: Told, layout: Layout): StatementResult<Row> {
  const columns = (told.columns ?? []) as readonly Column[];
  const given = (told.rows ?? []) as readonly object[];
  const rows = given.every(Array.isArray)
    ? given.map(createRowDecoder<Row>(columns, layout))
    : given.map(createObjectDecoder<Row>(columns, layout));
  const insertId = (told.insert_id ?? null) as string | null;
  return {
    columns,
    rows,
    rowCount: (told.row_count ?? 0) as number,
    truncated: told.truncated === true,
    affectedRows: (told.affected_rows ?? 0) as number,
    insertId: insertId !== null && layout.bigint === 'bigint' ? BigInt(insertId) : insertId,
    warnings: (told.warnings ?? 0) as number,
  };
}

/** Creates what makes a caller's row of an array. Throws as `decodeResult` does. */
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
  // Not by assignment: a column may be called __proto__.
  return (cells) =>
    Object.fromEntries(cells.map((cell, index) => [names[index], decodeCell(cell, index)])) as Row;
}

/** The same for rows that have come as objects: their names are known to be different ones. */
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
    `Several columns are called ${shown}: give them names, or ask for rows as arrays. The statement was executed.`,
    { code: 'DUPLICATE_COLUMNS', outcome: 'unknown', retryable: false },
  );
}

/** What is known of the whole at its end. */
export type StreamEnd = { readonly rowCount: number; readonly truncated: boolean };

/** A line that is no row: what comes first, or what comes last. */
type Marker = {
  readonly columns?: readonly Column[];
  readonly end?: { readonly row_count: number; readonly truncated: boolean };
  readonly error?: object & { readonly status?: number };
};

/** Whether a reply is in lines. */
export function isInLines({ response }: BegunReply): boolean {
  return response.headers.get('content-type')?.startsWith('application/x-ndjson') === true;
}

/** The rows; resolves to their end. Who leaves early ends the statement. Throws a DbhttpdError where the last line is missing. */
export async function* readRows<Row>(
  begun: BegunReply,
  sent: Sent,
  layout: Layout,
): AsyncGenerator<Row, StreamEnd, void> {
  const told = { status: begun.response.status, requestId: begun.requestId };
  const cut = (cause: unknown) =>
    interrupted(sent, 'REPLY_CUT', 'The reply was cut before its last line', told, cause);
  let decode: ((cells: readonly unknown[]) => Row) | null = null;
  for await (const lines of readLines(begun.response, cut)) {
    for (const line of lines) {
      const parsed = parseLine(line, begun, sent);
      if (Array.isArray(parsed)) {
        if (decode === null) throw noReplyOfOurs(begun.response, sent);
        yield decode(parsed);
        continue;
      }
      const { columns, end, error } = parsed as Marker;
      if (columns !== undefined) decode = createRowDecoder<Row>(columns, layout);
      else if (end !== undefined) return { rowCount: end.row_count, truncated: end.truncated };
      else throw failureOf(error, begun, sent);
    }
  }
  throw cut(null);
}

function parseLine(line: string, begun: BegunReply, sent: Sent): object {
  try {
    return JSON.parse(line) as object;
  } catch {
    throw noReplyOfOurs(begun.response, sent);
  }
}

function failureOf(error: Marker['error'], begun: BegunReply, sent: Sent): DbhttpdError {
  const facts = error === undefined ? null : problemOf(error);
  if (facts === null) return noReplyOfOurs(begun.response, sent);
  const { message, ...rest } = facts;
  return new DbhttpdError(message, { ...rest, status: error?.status ?? null });
}

/** The lines of a body as they come, several at once. One without its end is none. */
async function* readLines(
  { body }: Response,
  cut: (cause: unknown) => DbhttpdError,
): AsyncGenerator<readonly string[], void, void> {
  if (body === null) throw cut(null);
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const read = await reader.read().catch((cause: unknown) => {
        throw cut(cause);
      });
      if (read.done) return;
      // Only what is new is searched: a row may come in thousands of pieces.
      const [first = '', ...others] = decoder.decode(read.value, { stream: true }).split('\n');
      rest += first;
      if (others.length === 0) continue;
      const lines = [rest, ...others];
      rest = lines.pop() ?? '';
      yield lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

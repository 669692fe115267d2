// Results as a caller wants them: rows as objects or arrays, BIGINT as text or BigInt.
import { DbhttpdError } from './error.ts';

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

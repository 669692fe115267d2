// Several statements as one request, and the result of each.
import type { ModeOf, NamedStep, RowOfStep } from './named.ts';
import {
  type BatchOptions,
  type BigintMode,
  checkNames,
  encodeFields,
  layoutOf,
} from './options.ts';
import { type AllResults, decodeResults, type Layout } from './results.ts';
import { encodeNamedParameters, encodeParameters, Fragment, type Parameters } from './sql.ts';
import type { JsonObject } from './transport.ts';

/** A number, or a range; a missing end has no bound. */
type Count =
  | number
  | { readonly min: number; readonly max?: number | undefined }
  | { readonly min?: number | undefined; readonly max: number };

/** The number of rows that a statement must have changed, or returned. Otherwise the gateway undoes the whole batch. */
export type Expectation =
  | { readonly affectedRows: Count; readonly rowCount?: undefined }
  | { readonly affectedRows?: undefined; readonly rowCount: Count };

/** One statement of a batch: a template, alone or with an expectation, text with its parameters, or a step of `db.named`. */
export type BatchStatement<Row = unknown> =
  | Fragment<Row>
  | NamedStep<Row>
  | {
      readonly sql: Fragment<Row>;
      readonly params?: undefined;
      readonly expect?: Expectation | undefined;
    }
  | {
      readonly sql: string;
      readonly params?: Parameters | undefined;
      readonly expect?: Expectation | undefined;
    };

/** The type of rows, if the caller gives none. */
type RowOf<Row, Mode> = unknown extends Row ? Record<string, unknown> : RowOfStep<Row, Mode>;

/** The result of `batch`, once it is committed. */
export type BatchResult<Rows extends readonly unknown[], Mode extends BigintMode = 'string'> = {
  /** In the order of the statements. */
  readonly results: { readonly [Index in keyof Rows]: AllResults<RowOf<Rows[Index], Mode>> };
  /** How often the gateway repeated the batch after a deadlock, a lock wait or a snapshot conflict. */
  readonly reruns: number;
  /** The request's id in the gateway's log. */
  readonly requestId: string;
  readonly section: string;
  /** Whether an earlier request with the same idempotency key did this already. */
  readonly replayed: boolean;
  /** Whether the repeated reply lacks its rows, since they were too many to keep. */
  readonly rowsOmitted: boolean;
};

/** Several statements in one transaction: all of them, or none. */
export type Batch<Default extends BigintMode = 'string'> = <
  Rows extends readonly unknown[],
  const Mode extends BigintMode | undefined = Default,
>(
  statements: readonly [...{ [Index in keyof Rows]: BatchStatement<Rows[Index]> }],
  options?: Omit<BatchOptions, 'bigint'> & { readonly bigint?: Mode },
) => Promise<BatchResult<Rows, ModeOf<Mode>>>;

const statementNames = { sql: true, params: true, expect: true } as const;
const namedNames = { named: true, params: true } as const;
const templateNames = { sql: true, expect: true } as const;
const expectNames = { affectedRows: true, rowCount: true } as const;
const rangeNames = { min: true, max: true } as const;

/**
 * The request's JSON. Unlike a query's, it asks for rows in the caller's layout: if rows cannot be objects, the gateway notices and undoes
 * the batch. Throws a TypeError that names the place, not the value.
 */
export function encodeBatch(statements: readonly BatchStatement[], options: BatchOptions): string {
  if (!Array.isArray(statements)) throw new TypeError('the statements must be an array');
  const fields = encodeFields({
    section: options.section,
    atomic: options.atomic,
    isolation: options.isolation,
    read_only: options.readOnly,
    retry: options.reruns,
    show_warnings: options.showWarnings,
    timeout_ms: options.timeoutMs,
    rows: layoutOf(options).rows,
    json: options.json,
  });
  if (layoutOf(options).rows === 'array' && statements.some(isNamed)) {
    throw new TypeError('the rows of named statements are objects: rows must not be array');
  }
  const all = statements.map((one, index) => encodeStatement(one, `statement ${index}`));
  return `${fields.slice(0, -1)},"statements":[${all.join(',')}]}`;
}

function encodeStatement(statement: unknown, place: string): string {
  if (Fragment.isOne(statement)) return encodeOne(statement.text, statement.params, null, place);
  if (typeof statement !== 'object' || statement === null) {
    throw new TypeError(`${place} must be sql\`…\` or an object with sql`);
  }
  if (isNamed(statement)) {
    checkNames(statement, namedNames, `field of ${place}`);
    const { named, params } = statement;
    return `{"named":${JSON.stringify(named)},"params":${encodeNamedParameters(params, place)}}`;
  }
  const { sql, params = [], expect = null } = statement as Record<string, unknown>;
  const isTemplate = Fragment.isOne(sql);
  checkNames(statement, isTemplate ? templateNames : statementNames, `field of ${place}`);
  if (isTemplate) return encodeOne(sql.text, sql.params, expect, place);
  if (typeof sql === 'string') return encodeOne(sql, params as Parameters, expect, place);
  throw new TypeError(`${place}: sql must be a string or sql\`…\``);
}

/** Whether a statement is a step of `db.named`. */
function isNamed(
  statement: unknown,
): statement is { readonly named: string; readonly params?: unknown } {
  return typeof (statement as { readonly named?: unknown } | null)?.named === 'string';
}

function encodeOne(sql: string, params: Parameters, expect: unknown, place: string): string {
  const fields = encodeFields({ sql, expect: toExpect(expect, place) });
  return `${fields.slice(0, -1)},"params":${encodeParameters(params, `${place}, `)}}`;
}

function toExpect(expect: unknown, place: string): object | undefined {
  if (expect === null) return undefined;
  if (typeof expect !== 'object') throw new TypeError(`${place}: expect must be an object`);
  checkNames(expect, expectNames, `expectation of ${place}`);
  const { affectedRows, rowCount } = expect as Record<string, unknown>;
  if ((affectedRows === undefined) === (rowCount === undefined)) {
    throw new TypeError(`${place}: expect takes either affectedRows or rowCount`);
  }
  const count = affectedRows ?? rowCount;
  if (typeof count === 'object' && count !== null) checkRange(count, place);
  return { affected_rows: affectedRows, row_count: rowCount };
}

function checkRange(range: object, place: string): void {
  checkNames(range, rangeNames, `bound of ${place}`);
  if (Object.values(range).every((bound) => bound === undefined || bound === null)) {
    throw new TypeError(`${place}: expect without min and max expects nothing`);
  }
}

/** Decodes a reply; null if it is not a gateway's reply to `count` statements. */
export function decodeBatch(
  { committed, retries, results }: JsonObject,
  count: number,
  layout: Layout,
): Pick<BatchResult<readonly unknown[]>, 'results' | 'reruns'> | null {
  if (committed !== true || !Array.isArray(results) || results.length !== count) return null;
  const all = (results as readonly JsonObject[]).map((one) =>
    decodeResults<Record<string, unknown>>(one, layout),
  );
  if (!all.every((one) => one !== null)) return null;
  return { results: all, reruns: Number(retries) };
}

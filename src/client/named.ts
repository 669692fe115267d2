// Named statements: calls, streams and steps of batches, typed by what `dbhttpd --types` prints. The gateway's file has the SQL.
import {
  type BigintMode,
  checkNames,
  encodeFields,
  type HeldNamedOptions,
  heldNamedNames,
  layoutOf,
  type NamedOptions,
  type NamedStreamOptions,
  namedNames,
  namedStreamNames,
} from './options.ts';
import { type About, askWhole, toSent, type Whole } from './request.ts';
import {
  type AllResults,
  type Column,
  createRowDecoder,
  decodeResults,
  type Layout,
  type StatementResult,
  type StreamEnd,
} from './results.ts';
import { encodeNamedParameters } from './sql.ts';
import { rowOmitted, streamCsv, streamRows } from './statement.ts';
import { type Connection, type JsonObject, noReplyOfOurs, type Sent } from './transport.ts';

/** A named statement, as `dbhttpd --types` describes it. Nothing of it exists at run time. */
export type NamedStatement = NamedRows & {
  readonly kind: 'one' | 'many' | 'exec' | 'batch';
  /** The object of its parameters. */
  readonly params: object;
  /** Whether it takes an idempotency key. Missing: it takes none. */
  readonly key?: 'optional' | 'required';
  /** It is a transaction of its own, and cannot run in another. */
  readonly alone?: true;
  /** The results of the named steps of a batch. */
  readonly steps?: { readonly [step: string]: NamedRows };
};

/** The rows of a result. `row`: with BIGINT as text; never: it has no rows. `bigint`: the names of its BIGINT columns. */
export type NamedRows = { readonly row: unknown; readonly bigint?: string };

/** The statements of a gateway by name. */
export type NamedStatements<Named> = { readonly [Name in keyof Named]: NamedStatement };

/** The rows of a result, with BIGINT columns as the caller wants them. */
type RowIn<Rows extends NamedRows, Mode> = Mode extends 'bigint'
  ? Rows extends { readonly bigint: infer Wide }
    ? {
        readonly [Name in keyof Rows['row']]: CellIn<
          Rows['row'][Name],
          Name extends Wide ? true : false
        >;
      }
    : Rows['row']
  : Rows['row'];

type CellIn<Cell, IsWide> = IsWide extends true
  ? bigint | (null extends Cell ? null : never)
  : Cell;

/** The mode that an option chooses: no choice is text. */
export type ModeOf<Option> = Option extends BigintMode ? Option : 'string';

/** The result of a `:many` or an `:exec`. A CALL has all its results in `results`. */
export type NamedResult<Row> = Omit<AllResults<Row>, 'warningList'> & About;

/** The result of a `:batch`, once it is committed: that of its answer, and those of its steps. */
export type NamedBatchResult<Row, Steps> = NamedResult<Row> & {
  readonly steps: Steps;
  /** How often the gateway repeated the batch after a deadlock, a lock wait or a snapshot conflict. */
  readonly reruns: number;
};

type StepsIn<Statement, Mode> = Statement extends { readonly steps: infer Steps }
  ? {
      readonly [Step in keyof Steps]: Steps[Step] extends NamedRows
        ? StatementResult<RowIn<Steps[Step], Mode>>
        : never;
    }
  : Readonly<Record<never, never>>;

type ResultIn<Statement extends NamedStatement, Mode> = Statement['kind'] extends 'one'
  ? RowIn<Statement, Mode>
  : Statement['kind'] extends 'batch'
    ? NamedBatchResult<RowIn<Statement, Mode>, StepsIn<Statement, Mode>>
    : NamedResult<RowIn<Statement, Mode>>;

/** Parameters, which may be left out if none is required, and options. */
type Arguments<Params, Options> =
  Record<never, never> extends Params
    ? readonly [params?: Params, options?: Options]
    : readonly [params: Params, options?: Options];

type KeyedArguments<Statement extends NamedStatement, Options> = Statement extends {
  readonly key: 'required';
}
  ? readonly [
      params: Statement['params'],
      options: Options & { readonly idempotencyKey: string | true },
    ]
  : Statement extends { readonly key: 'optional' }
    ? Arguments<
        Statement['params'],
        Options & { readonly idempotencyKey?: string | true | null | undefined }
      >
    : Arguments<Statement['params'], Options & { readonly idempotencyKey?: null | undefined }>;

type WithMode<Options, Mode> = Omit<Options, 'bigint' | 'idempotencyKey'> & {
  readonly bigint?: Mode;
};

type Call<Statement extends NamedStatement, Default extends BigintMode> = <
  const Mode extends BigintMode | undefined = Default,
>(
  ...given: KeyedArguments<Statement, WithMode<NamedOptions, Mode>>
) => Promise<ResultIn<Statement, ModeOf<Mode>>>;

type Rows<Statement extends NamedStatement, Default extends BigintMode> = {
  /** The rows one by one, as they arrive. Leaving the loop ends the statement. */
  readonly stream: <const Mode extends BigintMode | undefined = Default>(
    ...given: Arguments<Statement['params'], WithMode<NamedStreamOptions, Mode>>
  ) => AsyncGenerator<RowIn<Statement, ModeOf<Mode>>, StreamEnd, void>;
  /** The rows as CSV, in parts of any length as they arrive. */
  readonly csv: (
    ...given: Arguments<Statement['params'], Omit<NamedStreamOptions, 'bigint' | 'idempotencyKey'>>
  ) => AsyncGenerator<string, void, void>;
};

declare const rowsOfStep: unique symbol;

/** A call of a named statement as a statement of `db.batch`. Only `db.named.….step()` creates it. */
export type NamedStep<Row> = {
  /** For the compiler only. */
  readonly [rowsOfStep]: Row;
  readonly named: string;
};

/** The rows of a step, of which the mode is not known yet. */
type AnyMode<Rows extends NamedRows> = { readonly [rowsOfStep]: Rows };

/** The row of a result of a batch: that of a step, with BIGINT columns as the caller wants them; or a row that the caller declared. */
export type RowOfStep<Row, Mode> =
  Row extends AnyMode<infer Rows> ? RowIn<Rows, ModeOf<Mode>> : Row;

type RowsOf<Statement extends NamedStatement> = Statement extends {
  readonly bigint: infer Wide extends string;
}
  ? { readonly row: Statement['row']; readonly bigint: Wide }
  : { readonly row: Statement['row'] };

type StepOf<Statement extends NamedStatement> = {
  /** The call as a statement of `db.batch`. */
  readonly step: (
    ...given: Record<never, never> extends Statement['params']
      ? readonly [params?: Statement['params']]
      : readonly [params: Statement['params']]
  ) => NamedStep<AnyMode<RowsOf<Statement>>>;
};

/** One named statement of a client. A `:many` can be streamed, and all but a `:batch` can be steps of a batch. */
export type NamedFunction<Statement extends NamedStatement, Default extends BigintMode> = Call<
  Statement,
  Default
> &
  (Statement['kind'] extends 'many' ? Rows<Statement, Default> : unknown) &
  (Statement['kind'] extends 'batch' ? unknown : StepOf<Statement>);

/** `db.named`: a function for each statement. */
export type NamedFunctions<Named extends NamedStatements<Named>, Default extends BigintMode> = {
  readonly [Name in Exclude<keyof Named, 'then'>]: NamedFunction<Named[Name], Default>;
};

type HeldRows<Statement extends NamedStatement, Default extends BigintMode> = {
  /** The rows one by one. Read them to their end: leaving the loop ends the transaction. */
  readonly stream: <const Mode extends BigintMode | undefined = Default>(
    ...given: Arguments<Statement['params'], WithMode<HeldNamedOptions, Mode>>
  ) => AsyncGenerator<RowIn<Statement, ModeOf<Mode>>, StreamEnd, void>;
};

type HeldCall<Statement extends NamedStatement, Default extends BigintMode> = <
  const Mode extends BigintMode | undefined = Default,
>(
  ...given: Arguments<Statement['params'], WithMode<HeldNamedOptions, Mode>>
) => Promise<ResultIn<Statement, ModeOf<Mode>>>;

/** `tx.named`: the statements that can run in a transaction that is open. */
export type HeldNamedFunctions<Named extends NamedStatements<Named>, Default extends BigintMode> = {
  readonly [Name in Exclude<keyof Named, 'then'> as Named[Name] extends { readonly alone: true }
    ? never
    : Name]: HeldCall<Named[Name], Default> &
    (Named[Name]['kind'] extends 'many' ? HeldRows<Named[Name], Default> : unknown);
};

/** One call, not yet checked. */
export type NamedCall = {
  readonly name: string;
  readonly params: unknown;
  readonly options: object;
};

/** The work of the functions of `db.named`. */
type Doing = {
  readonly call: (call: NamedCall) => Promise<unknown>;
  readonly stream: (call: NamedCall) => AsyncGenerator<unknown, StreamEnd, void>;
  readonly csv: (call: NamedCall) => AsyncGenerator<string, void, void>;
};

const names = /^[a-z][a-z0-9_]{0,39}$/;

/** Creates `db.named`. The client does not know which statements there are: the gateway does. */
export function createNamed(connection: Connection, defaults: object): object {
  return functionsOf({
    call: (call) => runNamed(connection, withDefaults(call, defaults), null),
    stream: (call) => streamNamed(connection, withDefaults(call, defaults), null),
    csv: (call) => csvNamed(connection, withDefaults(call, defaults)),
  });
}

function withDefaults(call: NamedCall, defaults: object): NamedCall {
  return { ...call, options: { ...defaults, ...call.options } };
}

/** Creates `tx.named`. */
export function createHeldNamed({ call, stream }: Omit<Doing, 'csv'>): object {
  return proxyOf((name) => {
    const of = callsOf(name);
    return Object.assign((params?: unknown, options?: object) => call(of(params, options)), {
      stream: (params?: unknown, options?: object) => stream(of(params, options)),
    });
  });
}

function callsOf(name: string): (params: unknown, options?: object) => NamedCall {
  return (params, options = {}) => ({ name, params, options });
}

function functionsOf({ call, stream, csv }: Doing): object {
  return proxyOf((name) => {
    const of = callsOf(name);
    return Object.assign((params?: unknown, options?: object) => call(of(params, options)), {
      stream: (params?: unknown, options?: object) => stream(of(params, options)),
      csv: (params?: unknown, options?: object) => csv(of(params, options)),
      step: (params?: unknown) => ({ named: name, params }),
    });
  });
}

/** An object with a function under every name of a statement. It is no promise: whatever has `then` would be awaited. */
function proxyOf(create: (name: string) => object): object {
  return new Proxy(Object.freeze({}), {
    get: (_target, name) =>
      typeof name === 'string' && name !== 'then' && names.test(name) ? create(name) : undefined,
  });
}

/** Runs a call. @param transaction the token of its transaction; null: none */
export async function runNamed(
  connection: Connection,
  call: NamedCall,
  transaction: string | null,
): Promise<unknown> {
  const known = transaction === null ? namedNames : heldNamedNames;
  checkNames(call.options, known, 'option of a named statement');
  const options: NamedOptions = call.options;
  const sent = toNamed(call, options, transaction);
  const whole = await askWhole(connection, sent, options);
  const found = decodeNamed(whole, { ...layoutOf(options), rows: 'object' });
  if (found === null) throw noReplyOfOurs(whole.begun, sent);
  return found;
}

/** Yields the rows of a call one by one. @param transaction as for `runNamed` */
export async function* streamNamed(
  connection: Connection,
  call: NamedCall,
  transaction: string | null,
): AsyncGenerator<unknown, StreamEnd, void> {
  const known = transaction === null ? namedStreamNames : heldNamedNames;
  checkNames(call.options, known, 'option of a stream of a named statement');
  const options = withoutNewKey(call.options);
  return yield* streamRows(connection, toNamed(call, options, transaction), options);
}

/** Streams are for reads, which have no key unless the caller gives one. */
function withoutNewKey({ idempotencyKey, ...options }: NamedStreamOptions): NamedStreamOptions {
  return idempotencyKey === true ? options : { ...options, idempotencyKey };
}

async function* csvNamed(
  connection: Connection,
  call: NamedCall,
): AsyncGenerator<string, void, void> {
  checkNames(call.options, namedStreamNames, 'option of CSV of a named statement');
  const options = withoutNewKey(call.options);
  yield* streamCsv(connection, toNamed(call, options, null), options);
}

/** The request. It asks for rows as arrays: then the reply has the columns of a single row, too. */
function toNamed(
  { name, params }: NamedCall,
  options: NamedOptions,
  transaction: string | null,
): Sent {
  const fields = encodeFields({
    transaction: transaction ?? undefined,
    section: transaction === null ? options.section : undefined,
    timeout_ms: options.timeoutMs,
    // The gateway knows whether a transaction may write.
    read_only: transaction === null ? options.readOnly : undefined,
    rows: 'array',
  });
  const body = `${fields.slice(0, -1)},"params":${encodeNamedParameters(params)}}`;
  return toSent(`/v1/named/${name}`, body, options);
}

/** The reply has the shape of its statement's kind. Null: it is not a gateway's. */
function decodeNamed({ json, about, begun }: Whole, layout: Layout): unknown {
  if (Array.isArray(json.row) && Array.isArray(json.columns)) {
    return createRowDecoder(json.columns as readonly Column[], layout)(json.row);
  }
  const { replayed, requestId } = about;
  if (json.rows_omitted === true && json.columns === undefined && json.results === undefined) {
    throw rowOmitted(requestId, begun.response.status);
  }
  const found = decodeResults<unknown>(json, layout);
  if (found === null) return null;
  const { warningList: _, ...result } = found;
  if (json.committed !== true) return { ...result, ...about };
  const steps = decodeSteps(json.steps, layout);
  return steps === null
    ? null
    : { ...result, steps, reruns: Number(json.retries), ...about, replayed };
}

function decodeSteps(steps: unknown, layout: Layout): object | null {
  const given = Object.entries((steps ?? {}) as Readonly<Record<string, JsonObject>>);
  const decoded = given.map(
    ([step, json]) => [step, decodeResults<unknown>(json, layout)] as const,
  );
  if (decoded.some(([, result]) => result === null)) return null;
  return Object.fromEntries(
    decoded.map(([step, found]) => {
      const { warningList: _, results: _results, ...result } = found as AllResults<unknown>;
      return [step, result];
    }),
  );
}

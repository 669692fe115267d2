// The options of requests. An option that would have no effect is a TypeError.
import type { Layout, Progress } from './results.ts';
import type { Seen } from './seen.ts';

/** The bounds of repetitions. The first bound that is reached ends them, with the last error. */
export type RetryPolicy = {
  /** The number of attempts, including the first. */
  readonly attempts: number;
  /** The time from the start of the first attempt to the start of the last, in ms. */
  readonly withinMs: number;
};

export const defaultRetries: RetryPolicy = { attempts: 4, withinMs: 30_000 };

/** How a caller gets BIGINT: as text, or as BigInt. */
export type BigintMode = Layout['bigint'];

/** Options of every request. */
type CommonOptions = {
  /** The gateway's deadline, in ms; by default the section's `statement_timeout`. */
  readonly timeoutMs?: number | undefined;
  /** Allows only reads, in a READ ONLY transaction: an interrupted request has then changed nothing. */
  readonly readOnly?: boolean | undefined;
  /** `object` by default. */
  readonly rows?: Layout['rows'] | undefined;
  /** BIGINT as text (the default) or as BigInt. */
  readonly bigint?: Layout['bigint'] | undefined;
  /** JSON columns as values (the default), whose numbers are JavaScript's, or as their text. */
  readonly json?: 'value' | 'string' | undefined;
  /**
   * 1 to 255 visible ASCII characters, or `true` for a random key for each request that may write. The gateway executes a request with a key
   * once, however often it is sent. Null: no key.
   */
  readonly idempotencyKey?: string | true | null | undefined;
  /** The section, if the gateway has several; the first by default. */
  readonly section?: string | undefined;
  /** The id of the request in the gateway's logs: 1 to 128 letters, digits and `_.:/+=@-`. The gateway makes one by default. */
  readonly requestId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The reader. Its requests see at least what its earlier requests saw and wrote. */
  readonly seen?: Seen | undefined;
  /** The bounds of repetitions; false: the client repeats nothing. */
  readonly retry?: Partial<RetryPolicy> | false | undefined;
};

/** The option of whatever has a place for warnings. */
type WarningOptions = {
  /** Results have up to ten of the server's warnings, in `warningList`. */
  readonly showWarnings?: boolean | undefined;
};

/** Options of each way to read rows. */
type RowsOptions = CommonOptions & {
  readonly maxRows?: number | undefined;
};

/** Options of a stream. */
export type StreamOptions = CsvOptions & WarningOptions;

/** Options of CSV. */
export type CsvOptions = RowsOptions & {
  /** Called whenever a part of the reply has arrived. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
};

/** Options of a single statement. */
export type QueryOptions = RowsOptions &
  WarningOptions & {
    /** If a write affects more rows, the gateway undoes it, and it fails with `TOO_MANY_ROWS`. */
    readonly maxAffected?: number | undefined;
    /** The gateway runs the statement, answers, and undoes it. */
    readonly dryRun?: boolean | undefined;
  };

/** Options of each statement, for templates. */
export type OptionsOfAll = QueryOptions & StreamOptions;

/** The isolation level: which changes of other transactions a transaction sees. */
type Isolation = 'read uncommitted' | 'read committed' | 'repeatable read' | 'serializable';

/** Options of a batch. */
export type BatchOptions = CommonOptions &
  WarningOptions & {
    /** false: no transaction; each statement commits by itself. */
    readonly atomic?: boolean | undefined;
    /** The session's by default. */
    readonly isolation?: Isolation | undefined;
    /** How often the gateway repeats the batch after a deadlock, a lock wait or a snapshot conflict; 3 by default. */
    readonly reruns?: number | undefined;
  };

/** Options of a transaction, which are also defaults for its statements. */
export type TransactionOptions = Omit<RowsOptions, 'idempotencyKey'> &
  WarningOptions & {
    /** The session's by default. */
    readonly isolation?: Isolation | undefined;
  };

/** Options of a statement in a transaction; the others are the transaction's. */
export type InnerOptions = Omit<
  RowsOptions & WarningOptions,
  'idempotencyKey' | 'readOnly' | 'section' | 'seen' | 'signal'
>;

/** Options of a call of a named statement. Its file decides how many rows there are and how they look; they are objects. */
export type NamedOptions = Omit<CommonOptions, 'rows' | 'json'>;

/** Options of the rows of a named statement, one by one or as CSV. */
export type NamedStreamOptions = NamedOptions & Pick<CsvOptions, 'onProgress'>;

/** Options of a call of a named statement in a transaction; the others are the transaction's. */
export type HeldNamedOptions = Omit<InnerOptions, 'rows' | 'json' | 'maxRows' | 'showWarnings'>;

/** The names of a kind of options. */
type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

export const namedNames: NamesOf<NamedOptions> = {
  timeoutMs: true,
  readOnly: true,
  bigint: true,
  idempotencyKey: true,
  section: true,
  requestId: true,
  signal: true,
  seen: true,
  retry: true,
};
const commonNames: NamesOf<CommonOptions> = { ...namedNames, rows: true, json: true };

/** All options of each method. The compiler reports a missing one. */
export const namedStreamNames: NamesOf<NamedStreamOptions> = { ...namedNames, onProgress: true };
export const csvNames: NamesOf<CsvOptions> = {
  ...commonNames,
  maxRows: true,
  onProgress: true,
};
export const streamNames: NamesOf<StreamOptions> = { ...csvNames, showWarnings: true };
export const queryNames: NamesOf<QueryOptions> = {
  ...commonNames,
  maxRows: true,
  showWarnings: true,
  maxAffected: true,
  dryRun: true,
};
export const allNames: NamesOf<OptionsOfAll> = { ...queryNames, ...streamNames };
export const batchNames: NamesOf<BatchOptions> = {
  ...commonNames,
  showWarnings: true,
  atomic: true,
  isolation: true,
  reruns: true,
};

export const innerNames: NamesOf<InnerOptions> = {
  showWarnings: true,
  timeoutMs: true,
  maxRows: true,
  rows: true,
  bigint: true,
  json: true,
  requestId: true,
  retry: true,
};
const outerNames: NamesOf<Omit<TransactionOptions, keyof InnerOptions>> = {
  readOnly: true,
  seen: true,
  signal: true,
  isolation: true,
  section: true,
};
export const transactionNames: NamesOf<TransactionOptions> = { ...innerNames, ...outerNames };
/** With those of the transaction, which have an effect on its other statements. */
export const heldNamedNames: NamesOf<
  HeldNamedOptions & Omit<TransactionOptions, keyof InnerOptions>
> = {
  ...outerNames,
  timeoutMs: true,
  bigint: true,
  requestId: true,
  retry: true,
};

/** Throws a TypeError for an unknown field: a misspelt guard (`readonly`) would guard nothing. */
export function checkNames(
  fields: object,
  known: Readonly<Record<string, true>>,
  kind: string,
): void {
  const unknown = Object.entries(fields).find(
    ([name, value]) => value !== undefined && !Object.hasOwn(known, name),
  );
  if (unknown === undefined) return;
  const names = Object.keys(known).join(', ');
  throw new TypeError(`${JSON.stringify(unknown[0])} is no ${kind}; there are ${names}`);
}

/** The JSON of plain fields. Throws a TypeError for NaN and infinite numbers, which would become null and bound nothing. */
export function encodeFields(fields: object): string {
  return JSON.stringify(fields, (name, value: unknown) => {
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw new TypeError(`${name} must be a finite number`);
  });
}

/** The layout of results. */
export function layoutOf({ rows, bigint }: CommonOptions): Layout {
  return { rows: rows ?? 'object', bigint: bigint ?? 'string' };
}

/** The bounds of repetitions. */
export function retriesOf({ retry }: CommonOptions): RetryPolicy {
  return retry === false ? { attempts: 1, withinMs: 0 } : { ...defaultRetries, ...retry };
}

/** The key of one request, for all its repetitions; null: no key. Throws a TypeError for an invalid key. */
export function keyOf({ idempotencyKey: key, readOnly, dryRun }: QueryOptions): string | null {
  if (key === undefined || key === null) return null;
  // The gateway takes no key for requests that change nothing; they may run twice.
  if (key === true) return readOnly === true || dryRun === true ? null : newKey();
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
}

/** The caller's id of a request; null: the gateway makes one. Throws a TypeError for an id that the gateway would replace. */
export function requestIdOf({ requestId }: CommonOptions): string | null {
  if (requestId === undefined) return null;
  if (/^[\w.:/+=@-]{1,128}$/.test(requestId)) return requestId;
  throw new TypeError('requestId must be 1 to 128 letters, digits and _.:/+=@-');
}

/** 128 random bits. Not randomUUID, which browsers hide from pages loaded by plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

// What a request may choose, and as what it is sent. A choice that would be lost on its way is a TypeError, never left out.
import type { Layout } from './results.ts';
import type { Seen } from './seen.ts';

/** How long to go on: whichever bound comes first ends it, with the last error. */
export type RetryPolicy = {
  /** The first one included. */
  readonly attempts: number;
  /** From the first attempt's start to the last one's, in ms. */
  readonly withinMs: number;
};

/** What is used where nothing else is said. */
export const defaultRetries: RetryPolicy = { attempts: 4, withinMs: 30_000 };

/** What every request may choose. */
type CommonOptions = {
  /** The gateway's deadline, in ms; without it the section's `statement_timeout`. */
  readonly timeoutMs?: number | undefined;
  /** Only what reads, in a READ ONLY transaction: then an interrupted request has changed nothing. */
  readonly readOnly?: boolean | undefined;
  /** `object` by default. */
  readonly rows?: Layout['rows'] | undefined;
  /** BIGINT as text (the default) or as BigInt. */
  readonly bigint?: Layout['bigint'] | undefined;
  /** JSON columns as values (the default), whose numbers are JavaScript's, or as their text. */
  readonly json?: 'value' | 'string' | undefined;
  /**
   * Of 1 to 255 visible characters, or `true` for one of the client's own, a new one for each request that may write: the
   * gateway executes the request once, however often it is sent. Null: none.
   */
  readonly idempotencyKey?: string | true | null | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whose reads it is: they see at least what was seen before with the same one, and own writes. */
  readonly seen?: Seen | undefined;
  /** Bounds of what is sent again by itself; false: nothing is. */
  readonly retry?: Partial<RetryPolicy> | false | undefined;
};

/** What a stream may choose. */
export type StreamOptions = CommonOptions & {
  readonly maxRows?: number | undefined;
};

/** What a single statement may choose. */
export type QueryOptions = StreamOptions & {
  /** A write that touches more rows is undone, and fails with `TOO_MANY_ROWS`. */
  readonly maxAffected?: number | undefined;
  /** The statement runs, is answered, and is undone. */
  readonly dryRun?: boolean | undefined;
};

/** What a transaction sees of others. */
type Isolation = 'read uncommitted' | 'read committed' | 'repeatable read' | 'serializable';

/** What a batch may choose. */
export type BatchOptions = CommonOptions & {
  /** false: no transaction; each statement commits by itself. */
  readonly atomic?: boolean | undefined;
  /** The session's by default. */
  readonly isolation?: Isolation | undefined;
  /** How often the gateway runs the batch again after a deadlock, a lock wait or a snapshot conflict; 3 by default. */
  readonly reruns?: number | undefined;
};

/** What a transaction may choose, for itself and for what its statements do not choose. */
export type TransactionOptions = Omit<StreamOptions, 'idempotencyKey'> & {
  /** The session's by default. */
  readonly isolation?: Isolation | undefined;
  /** Where the gateway has several; its first one by default. */
  readonly section?: string | undefined;
};

/** What a statement in a transaction may choose; the rest is the transaction's. */
export type InnerOptions = Omit<StreamOptions, 'idempotencyKey' | 'readOnly' | 'seen' | 'signal'>;

/** The names of a kind of options. */
type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

const commonNames: NamesOf<CommonOptions> = {
  timeoutMs: true,
  readOnly: true,
  rows: true,
  bigint: true,
  json: true,
  idempotencyKey: true,
  signal: true,
  seen: true,
  retry: true,
};

/** All options of each method; the compiler names one that is missing. */
export const streamNames: NamesOf<StreamOptions> = { ...commonNames, maxRows: true };
export const queryNames: NamesOf<QueryOptions> = {
  ...streamNames,
  maxAffected: true,
  dryRun: true,
};
export const batchNames: NamesOf<BatchOptions> = {
  ...commonNames,
  atomic: true,
  isolation: true,
  reruns: true,
};

export const innerNames: NamesOf<InnerOptions> = {
  timeoutMs: true,
  maxRows: true,
  rows: true,
  bigint: true,
  json: true,
  retry: true,
};
export const transactionNames: NamesOf<TransactionOptions> = {
  ...innerNames,
  readOnly: true,
  seen: true,
  signal: true,
  isolation: true,
  section: true,
};

/** Throws a TypeError for a field that there is not: a guard that is misspelt (`readonly`) would guard nothing. */
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

/** The JSON of fields whose values are plain. Throws a TypeError for NaN and the infinite: as null they would bound nothing. */
export function encodeFields(fields: object): string {
  return JSON.stringify(fields, (name, value: unknown) => {
    if (typeof value !== 'number' || Number.isFinite(value)) return value;
    throw new TypeError(`${name} must be a number that is finite`);
  });
}

/** How results are to look. */
export function layoutOf({ rows, bigint }: CommonOptions): Layout {
  return { rows: rows ?? 'object', bigint: bigint ?? 'string' };
}

/** The bounds of repetitions. */
export function retriesOf({ retry }: CommonOptions): RetryPolicy {
  return retry === false ? { attempts: 1, withinMs: 0 } : { ...defaultRetries, ...retry };
}

/** The key of one request, for all its repetitions; null: it has none. Throws a TypeError for what can be none. */
export function keyOf({ idempotencyKey: key, readOnly, dryRun }: QueryOptions): string | null {
  if (key === undefined || key === null) return null;
  // What leaves nothing behind may be done twice, and the gateway takes no key for it.
  if (key === true) return readOnly === true || dryRun === true ? null : newKey();
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters');
}

/** 128 random bits. Not randomUUID, which browsers hide from pages that came by plain HTTP. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

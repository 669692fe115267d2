// What is summed up of the requests whose statements have one digest, and how a part of it travels to the supervisor.
// Must not know how digests are made, nor how many are kept.

const leastMs = 0.1;
const mostMs = 60_000;
/** The first is for all below the least, the last for all from the most on. */
export const latencyBuckets = 64;
const between = latencyBuckets - 2;
const ratio = (mostMs / leastMs) ** (1 / between);
const perLog = 1 / Math.log(ratio);

/** The bucket of a latency: each holds 24 % more than the one before, from 0.1 ms to 60 s. */
export function latencyBucket(ms: number): number {
  if (ms < leastMs) return 0;
  if (ms >= mostMs) return latencyBuckets - 1;
  return Math.min(between, 1 + Math.floor(Math.log(ms / leastMs) * perLog));
}

/**
 * The latency (ms) below which a share of those counted lies, right within its bucket. Null: nothing was counted.
 * @param counts by bucket
 * @param longestMs the longest that was counted
 */
export function latencyPercentile(
  counts: ArrayLike<number>,
  share: number,
  longestMs: number,
): number | null {
  let total = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) total += counts[bucket] as number;
  if (total === 0) return null;
  let left = share * total;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    const count = counts[bucket] as number;
    if (count > 0 && left <= count)
      return Math.min(longestMs, within(bucket, left / count, longestMs));
    left -= count;
  }
  return longestMs;
}

/** Where a part of a bucket's latencies lies, were they spread evenly by their logarithm. */
function within(bucket: number, part: number, longestMs: number): number {
  if (bucket === 0) return leastMs * part;
  const from = leastMs * ratio ** (bucket - 1);
  const to = bucket === latencyBuckets - 1 ? Math.max(longestMs, from) : from * ratio;
  return from * (to / from) ** part;
}

/** What has come to one statement since it was last told; times in ms. */
export type StatementReport = {
  readonly section: string;
  readonly digest: string;
  readonly sums: SumsReport;
};

/** What a worker tells of its statements; `other`: of those that it did not keep apart. Null: nothing has come. */
export type StatementsReport = {
  readonly statements: readonly StatementReport[];
  readonly other: SumsReport | null;
};

type Numbers = {
  readonly count: number;
  readonly rows: number;
  readonly totalMs: number;
  readonly longestMs: number;
  /** Since 1970. */
  readonly lastSeenMs: number;
  readonly exampleId: string;
};

/** Sums as they travel. */
export type SumsReport = Numbers & {
  readonly errors: Readonly<Record<string, number>>;
  /** Pairs: a latency's bucket, and how many there were. */
  readonly latencies: readonly number[];
};

/** What is told of a statement; `digest` is `other`, without a section, for all that are not told by themselves. */
export type ListedStatement = {
  readonly digest: string;
  readonly section?: string;
  readonly count: number;
  readonly errors: number;
  /** By MySQL's name or by the code of the failure. */
  readonly errors_by: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly total_ms: number;
  /** Of the time that all statements have taken. */
  readonly share: number;
  /** Null: none of them has reached MySQL. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
  /** Null: there was none. */
  readonly last_seen: string | null;
  readonly example_id: string | null;
  /** Null: it is none of those that have taken most time in these ten minutes. */
  readonly history: StatementHistory | null;
};

/** By the points of `StatementList.history`. */
export type StatementHistory = {
  readonly count: readonly number[];
  readonly total_ms: readonly number[];
};

/** The longest first, `other` last. */
export type StatementList = {
  /** The last ten minutes; the last point is under way. */
  readonly history: {
    readonly interval_seconds: number;
    /** When each point began, in seconds since 1970. */
    readonly at: readonly number[];
  };
  readonly statements: readonly ListedStatement[];
};

/** More are not told by themselves. */
export const maxListedStatements = 500;
/** Of more the last ten minutes are not told. */
export const maxListedHistories = 30;

/** One request's share of a statement's sums. */
export type StatementRun = {
  readonly rows: number;
  /** How long MySQL has had it. Null: it never reached MySQL. */
  readonly databaseMs: number | null;
  /** Null: it succeeded. */
  readonly error: string | null;
  readonly requestId: string;
};

/** More classes of errors than this are not told apart. */
const mostErrorClasses = 16;
const otherErrors = 'other';

/** The sums of one statement. */
export class StatementSums {
  count = 0;
  rows = 0;
  totalMs = 0;
  longestMs = 0;
  lastSeenMs = 0;
  /** A request of the last part that was added, the longest of it. Empty: none. */
  exampleId = '';
  readonly latencies = new Float64Array(latencyBuckets);
  readonly errors = new Map<string, number>();

  /** When it was is for whoever tells the sums: to look at a clock costs as much as all of this. */
  addRun({ rows, databaseMs, error, requestId }: StatementRun): void {
    this.count += 1;
    this.rows += rows;
    if (error !== null) this.#addErrors(error, 1);
    if (databaseMs === null) {
      if (this.exampleId === '') this.exampleId = requestId;
      return;
    }
    const bucket = latencyBucket(databaseMs);
    this.latencies[bucket] = (this.latencies[bucket] as number) + 1;
    this.totalMs += databaseMs;
    if (databaseMs >= this.longestMs) {
      this.longestMs = databaseMs;
      this.exampleId = requestId;
    }
  }

  /** Adds what has travelled. */
  add(part: SumsReport): void {
    this.#addNumbers(part);
    const { latencies } = part;
    for (let at = 0; at + 1 < latencies.length; at += 2) {
      const bucket = latencies[at] as number;
      this.latencies[bucket] = (this.latencies[bucket] as number) + (latencies[at + 1] as number);
    }
    for (const [error, count] of Object.entries(part.errors)) this.#addErrors(error, count);
  }

  /** Adds all of another statement's. */
  merge(sums: StatementSums): void {
    this.#addNumbers(sums);
    for (let bucket = 0; bucket < latencyBuckets; bucket += 1) {
      this.latencies[bucket] =
        (this.latencies[bucket] as number) + (sums.latencies[bucket] as number);
    }
    for (const [error, count] of sums.errors) this.#addErrors(error, count);
  }

  #addNumbers(sums: Numbers): void {
    this.count += sums.count;
    this.rows += sums.rows;
    this.totalMs += sums.totalMs;
    this.longestMs = Math.max(this.longestMs, sums.longestMs);
    if (sums.lastSeenMs < this.lastSeenMs || sums.count === 0) return;
    this.lastSeenMs = sums.lastSeenMs;
    this.exampleId = sums.exampleId;
  }

  /** All of it, as it travels. */
  part(): SumsReport {
    const { count, rows, totalMs, longestMs, lastSeenMs, exampleId } = this;
    const latencies: number[] = [];
    for (let bucket = 0; bucket < latencyBuckets; bucket += 1) {
      const counted = this.latencies[bucket] as number;
      if (counted > 0) latencies.push(bucket, counted);
    }
    const errors = Object.fromEntries(this.errors);
    return { count, rows, totalMs, longestMs, errors, latencies, lastSeenMs, exampleId };
  }

  /** Begins anew. */
  clear(): void {
    this.count = 0;
    this.rows = 0;
    this.totalMs = 0;
    this.longestMs = 0;
    this.lastSeenMs = 0;
    this.exampleId = '';
    this.latencies.fill(0);
    this.errors.clear();
  }

  #addErrors(error: string, count: number): void {
    const isKnown = this.errors.has(error) || this.errors.size < mostErrorClasses;
    const name = isKnown ? error : otherErrors;
    this.errors.set(name, (this.errors.get(name) ?? 0) + count);
  }
}

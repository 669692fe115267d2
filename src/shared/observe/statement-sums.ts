// The sums over all requests whose statements have one digest, and their reports from workers to the supervisor.

const minMs = 0.1;
const maxMs = 60_000;
/** The first bucket is for all latencies below `minMs`, the last one for `maxMs` and above. */
export const latencyBuckets = 64;
const between = latencyBuckets - 2;
const ratio = (maxMs / minMs) ** (1 / between);
const perLog = 1 / Math.log(ratio);

/** The bucket of a latency: each reaches 24 % further than the one before, from 0.1 ms to 60 s. */
export function latencyBucket(ms: number): number {
  if (ms < minMs) return 0;
  if (ms >= maxMs) return latencyBuckets - 1;
  return Math.min(between, 1 + Math.floor(Math.log(ms / minMs) * perLog));
}

/**
 * The latency (ms) that a share of the requests stays below, exact to its bucket. Null: there are no counts.
 * @param counts by bucket
 * @param longestMs the longest latency that was counted
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

/** The latency at a part of a bucket, if its latencies are spread evenly by their logarithm. */
function within(bucket: number, part: number, longestMs: number): number {
  if (bucket === 0) return minMs * part;
  const from = minMs * ratio ** (bucket - 1);
  const to = bucket === latencyBuckets - 1 ? Math.max(longestMs, from) : from * ratio;
  return from * (to / from) ** part;
}

/** The sums of one statement since the last report; times in ms. */
export type StatementReport = {
  readonly section: string;
  readonly client: string;
  /** The named statement; null: the statement has no name. */
  readonly named: string | null;
  readonly digest: string;
  readonly sums: SumsReport;
};

/** A worker's report of its statements; `other` sums up those that it did not keep apart. Null: there are none. */
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

/** Sums in a message. */
export type SumsReport = Numbers & {
  readonly errors: Readonly<Record<string, number>>;
  /** Pairs of a bucket and its count. */
  readonly latencies: readonly number[];
};

/** A statement of a client in /v1/statements. The last one has the digest `other`, no section and no client, and sums up all that are not listed. */
export type ListedStatement = {
  readonly digest: string;
  readonly section?: string;
  readonly client?: string;
  /** The named statement; missing: the statement has no name. */
  readonly name?: string;
  readonly count: number;
  readonly errors: number;
  /** By the name of MySQL's error, or by the code of the failure. */
  readonly errors_by: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly total_ms: number;
  /** The share of the time that all statements have taken. */
  readonly share: number;
  /** Null: no request has reached MySQL. */
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
  /** Null: there was none. */
  readonly last_seen: string | null;
  readonly example_id: string | null;
  /** Null: the statement is not one of those that took most time in the last ten minutes. */
  readonly history: StatementHistory | null;
};

/** One value for each point of `StatementList.history`. */
export type StatementHistory = {
  readonly count: readonly number[];
  readonly total_ms: readonly number[];
};

/** The calls of a named statement since the start, over all clients and workers. */
export type NamedCounts = {
  readonly name: string;
  readonly calls: number;
  /** Those among them that had no result. */
  readonly failed: number;
  /** For how long the database has worked on them. */
  readonly total_ms: number;
};

/** A named statement in /v1/statements. */
export type ListedNamed = NamedCounts & {
  readonly section: string;
  readonly kind: 'one' | 'many' | 'exec' | 'batch';
  /** The clients that may call it; `*`: every client with the permission `named`. */
  readonly for: readonly string[];
};

/** The longest first, `other` last. */
export type StatementSumsList = {
  /** The last ten minutes; the last point has not ended. */
  readonly history: {
    readonly interval_seconds: number;
    /** When each point began, in seconds since 1970. */
    readonly at: readonly number[];
  };
  readonly statements: readonly ListedStatement[];
};

/** The same, with what was counted of named statements. */
export type CountedStatements = StatementSumsList & { readonly named: readonly NamedCounts[] };

/** The answer of /v1/statements. */
export type StatementList = StatementSumsList & {
  /** All of them, by name, whether or not they were called. */
  readonly named: readonly ListedNamed[];
};

/** The limit on statements in a list. */
export const maxListedStatements = 500;
/** The limit on statements with a history. */
export const maxListedHistories = 30;

/** The limit on different errors of a statement; the rest count as `other`. */
const maxErrorClasses = 16;
const otherErrors = 'other';

/** The sums of one statement. */
export class StatementSums {
  count = 0;
  rows = 0;
  totalMs = 0;
  longestMs = 0;
  lastSeenMs = 0;
  /** The id of the longest request of the latest report. Empty: there is none. */
  exampleId = '';
  readonly latencies = new Float64Array(latencyBuckets);
  readonly errors = new Map<string, number>();

  /**
   * Adds one request. Its time is added with the report, because reading a clock costs as much as all of this.
   * @param databaseMs how long MySQL had the statement; null: the request never reached MySQL
   * @param error null: the request succeeded
   */
  addRun(rows: number, databaseMs: number | null, error: string | null, requestId: string): void {
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

  /** Adds the sums of a message. */
  add(report: SumsReport): void {
    this.#addNumbers(report);
    const { latencies } = report;
    for (let at = 0; at + 1 < latencies.length; at += 2) {
      const bucket = latencies[at] as number;
      this.latencies[bucket] = (this.latencies[bucket] as number) + (latencies[at + 1] as number);
    }
    for (const [error, count] of Object.entries(report.errors)) this.#addErrors(error, count);
  }

  /** Adds the sums of another statement. */
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

  /** The sums for a message. */
  report(): SumsReport {
    const { count, rows, totalMs, longestMs, lastSeenMs, exampleId } = this;
    const latencies: number[] = [];
    for (let bucket = 0; bucket < latencyBuckets; bucket += 1) {
      const counted = this.latencies[bucket] as number;
      if (counted > 0) latencies.push(bucket, counted);
    }
    const errors = Object.fromEntries(this.errors);
    return { count, rows, totalMs, longestMs, errors, latencies, lastSeenMs, exampleId };
  }

  /** Sets all sums to 0. */
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
    const isKnown = this.errors.has(error) || this.errors.size < maxErrorClasses;
    const name = isKnown ? error : otherErrors;
    this.errors.set(name, (this.errors.get(name) ?? 0) + count);
  }
}

// The report of every load generator about one run.

/** One run, as the client saw it. */
export type Outcome = {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Refused or broken connections, timeouts, statuses other than 2xx, replies that are not what they should be. */
  readonly errors: number;
  /** When the body of a large reply began; null if it was not measured. */
  readonly firstByteMs: number | null;
  /** Bytes received over HTTP, with heads and unfinished replies; null for a client of the database. */
  readonly bytes: number | null;
};

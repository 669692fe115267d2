// What every load generator reports about one run.

/** One run, as the client saw it. */
export type Outcome = {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Refused or broken connections, timeouts, statuses other than 2xx, replies that are not what they should be. */
  readonly errors: number;
  /** Of a large reply: when its body began; null where it is not measured. */
  readonly firstByteMs: number | null;
  /** What came over HTTP, heads and unfinished replies included; null for a client of the database. */
  readonly bytes: number | null;
};

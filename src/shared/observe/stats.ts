// The state of an instance as workers report it and /v1 shows it: statistics, requests in flight, recent errors.
import type { FailureCode, RequestOutcome } from '../failure-codes.ts';

/** A worker, by its slot. `silent`: it does not answer its supervisor; its figures are its last ones. */
export type WorkerStats = {
  readonly slot: number;
  readonly pid: number | null;
  readonly state: 'serving' | 'starting' | 'silent' | 'down';
  readonly restarts: number;
  readonly runs_other_code: boolean;
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly unready: string | null;
  readonly requests_in_flight: number;
  readonly client_connections: number;
  readonly cpu_seconds: number;
  readonly memory_bytes: number;
  /** The longest delay of its event loop within ten seconds. Null: it has not told of any yet. */
  readonly event_loop_lag_ms: number | null;
};

/** What one worker makes of one of several servers. */
export type ServerVerdict = {
  readonly section: string;
  readonly backend: string;
  readonly role: string;
  /** Why: no words of the server's, no accounts. */
  readonly reason: string;
};

/** A server, as all workers together see and use it. */
export type BackendStats = {
  readonly section: string;
  readonly backend: string;
  /** What most workers make of it; null: it is alone in its section. */
  readonly role: string | null;
  /** Why they do, as the first of them tells; null: it is alone in its section. */
  readonly reason: string | null;
  /** The longest that a worker knows of; null: it is not known, or there is none. */
  readonly lag_seconds: number | null;
  /** A replica that is behind by more gets no reads. Null: this section does not read from replicas. */
  readonly max_lag_seconds: number | null;
  readonly connections: {
    readonly busy: number;
    readonly idle: number;
    readonly connecting: number;
    readonly max: number;
  };
  /** Those of the busy ones that are held by transactions of clients, from request to request. */
  readonly transactions_held: number;
  readonly waiting: number;
};

/** What can be seen of the last minutes, the oldest point first. Null: nothing is known of that moment. */
export type HistoryStats = {
  readonly interval_seconds: number;
  /** Seconds since 1970. */
  readonly at: readonly number[];
  /** Per second. */
  readonly outcomes: Readonly<Record<string, readonly (number | null)[]>>;
  readonly latency_ms: {
    readonly p50: readonly (number | null)[];
    readonly p95: readonly (number | null)[];
    readonly p99: readonly (number | null)[];
  };
  /** What of nineteen requests in twenty takes no longer: waiting for a connection, MySQL's time to the first row. */
  readonly phases_p95_ms: {
    readonly waiting: readonly (number | null)[];
    readonly first_row: readonly (number | null)[];
  };
  readonly connections: {
    readonly busy: readonly (number | null)[];
    readonly max: readonly (number | null)[];
  };
  readonly waiting: readonly (number | null)[];
};

/** All of it. */
export type Stats = {
  readonly version: string;
  readonly node: string;
  /** The instance's name: its first section. */
  readonly section: string;
  readonly now: string;
  readonly started_at: string;
  readonly ready: boolean;
  readonly workers: readonly WorkerStats[];
  readonly backends: readonly BackendStats[];
  /** Since the start, over all workers there ever were. */
  readonly totals: {
    readonly requests: number;
    readonly outcomes: Readonly<Record<string, number>>;
    readonly failures: Readonly<Record<string, number>>;
  };
  readonly history: HistoryStats;
  /** The latest first. */
  readonly errors: readonly (RecentError & { readonly worker: number })[];
};

/** Where a request is: it waits for MySQL, MySQL has it, its reply leaves, or its reader takes nothing of that. */
export type LivePhase = 'waiting' | 'running' | 'streaming' | 'stalled';

/** A request as its worker knows it. */
export type LiveRequest = {
  /** Unique in its worker. */
  readonly id: number;
  readonly request_id: string;
  /** The trace that it is part of; null: of none. */
  readonly trace_id: string | null;
  readonly age_ms: number;
  readonly phase: LivePhase;
  /** The client's address; null: it came by a unix socket, or has gone. */
  readonly client: string | null;
  /** The server that has it; null: none yet. */
  readonly backend: string | null;
  readonly section: string;
  /** Its statements without literals. */
  readonly shape: string | null;
};

/** What a worker tells of them. */
export type LiveRequests = {
  /** The oldest first, at most `maxListedRequests`. */
  readonly requests: readonly LiveRequest[];
  /** How many more there are. */
  readonly omitted: number;
};

/** A request as it is told to people. */
export type ListedRequest = Omit<LiveRequest, 'id'> & {
  /** Unique in the instance. */
  readonly id: string;
  /** The number of its worker. */
  readonly worker: number;
};

/** All requests of an instance, the oldest first. */
export type RequestList = {
  readonly requests: readonly ListedRequest[];
  readonly omitted: number;
  /** The numbers of workers that did not answer in time. */
  readonly silent_workers: readonly number[];
};

/** The requests that are listed for each worker: few people read more. */
export const maxListedRequests = 500;

/** One of them. */
export type RecentError = {
  /** When it ended: ISO 8601, in UTC. */
  readonly at: string;
  readonly request_id: string;
  /** Null: it was refused before its section was known. */
  readonly section: string | null;
  readonly status: number;
  /** Null: it is MySQL's own error. */
  readonly code: FailureCode | null;
  /** MySQL's number; null: it is not MySQL's error. */
  readonly errno: number | null;
  readonly outcome: RequestOutcome;
  /** Its statements without literals; null: they are not known. */
  readonly shape: string | null;
};

/** So many are kept and told, the latest. */
export const maxRecentErrors = 50;

// The state of an instance as workers report it and /v1 shows it: statistics, requests in flight, recent errors.
import type { FailureCode, RequestOutcome } from '../failure-codes.ts';

/** A worker, by its slot. `silent`: the worker does not answer the supervisor, and its figures are the last known ones. */
export type WorkerStats = {
  readonly slot: number;
  readonly pid: number | null;
  readonly state: 'serving' | 'starting' | 'silent' | 'down';
  readonly restarts: number;
  readonly runs_other_code: boolean;
  readonly ready: boolean;
  /** Why the worker is not ready. */
  readonly unready: string | null;
  readonly requests_in_flight: number;
  readonly client_connections: number;
  readonly cpu_seconds: number;
  readonly memory_bytes: number;
  /** The longest delay of its event loop in the last ten seconds. Null: it has not reported yet. */
  readonly event_loop_lag_ms: number | null;
};

/** The role of one of several servers, as one worker sees it. */
export type ServerVerdict = {
  readonly section: string;
  readonly backend: string;
  readonly role: string;
  /** Why it has this role, without texts of the server and without accounts. */
  readonly reason: string;
};

/** A server, over all workers. */
export type BackendStats = {
  readonly section: string;
  readonly backend: string;
  /** The role that most workers see; null: the section has one server. */
  readonly role: string | null;
  /** Why, by the first of these workers; null: the section has one server. */
  readonly reason: string | null;
  /** The longest lag that a worker knows; null: none is known. */
  readonly lag_seconds: number | null;
  /** A replica with a longer lag gets no reads. Null: the section does not read from replicas. */
  readonly max_lag_seconds: number | null;
  readonly connections: {
    readonly busy: number;
    readonly idle: number;
    readonly connecting: number;
    readonly max: number;
  };
  /** How many of the busy connections are reserved for transactions of clients. */
  readonly transactions_held: number;
  readonly waiting: number;
  /** MySQL's number for why a worker cannot connect now; null: all can, or the server gave no number. */
  readonly connect_errno: number | null;
};

/** Values over time, the oldest first. Null: nothing is known of that point. */
export type Series = readonly (number | null)[];

/** The last ten minutes. */
export type HistoryStats = {
  readonly interval_seconds: number;
  /** Seconds since 1970. */
  readonly at: readonly number[];
  /** Per second. */
  readonly outcomes: Readonly<Record<string, Series>>;
  /** The requests a second among them that the data refused, such as duplicate keys. */
  readonly data_refusals: Series;
  readonly latency_ms: Readonly<Record<'p50' | 'p95' | 'p99', Series>>;
  /** The 95th percentiles of two phases: waiting for a connection, and MySQL's time to the first row. */
  readonly phases_p95_ms: Readonly<Record<'waiting' | 'first_row', Series>>;
  readonly connections: Readonly<Record<'busy' | 'max', Series>>;
  readonly waiting: Series;
};

/** A client, over all workers. */
export type ClientStats = {
  readonly client: string;
  /** The share of the time for which all clients have held connections in the last minute. */
  readonly share: number;
  /** Requests that run now; a transaction that is held counts. */
  readonly in_flight: number;
  readonly waiting: number;
  /** In the last ten minutes. */
  readonly refused_recently: number;
  /** The following numbers count from the start on. */
  readonly requests: number;
  readonly refused: number;
  readonly refused_by: Readonly<Record<string, number>>;
  readonly held_seconds: number;
  readonly reply_bytes: number;
  /** Null: the client is not one of the first ones. */
  readonly history: ClientHistoryPoints | null;
};

/** One value for each point of `ClientList.history`. */
export type ClientHistoryPoints = {
  /** The connections that it has held, on average. */
  readonly connections: readonly number[];
  readonly refused: readonly number[];
};

/** The clients, those that have lately held connections for the longest time first. */
export type ClientList = {
  /** The last ten minutes; the last point has not ended. */
  readonly history: {
    readonly interval_seconds: number;
    /** When each point began, in seconds since 1970. */
    readonly at: readonly number[];
  };
  /** How many more there are. */
  readonly omitted: number;
  readonly clients: readonly ClientStats[];
};

/** The limit on clients in a list. */
export const maxListedClients = 200;
/** The limit on clients with a history. */
export const maxListedClientHistories = 30;

/** A fault of a file of credentials when it was last read: what it held before stays in use. */
export type FileFault = {
  readonly section: string;
  /** The key that names the file. */
  readonly key: string;
  /** The place in the file; null: it is a fault of the file as a whole. */
  readonly at: string | null;
  readonly problem: string;
};

/** The limit on faults that are shown. The log has all. */
export const maxFileFaults = 100;

/** The state of an instance. */
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
  /** Over all workers since the start. */
  readonly totals: {
    readonly requests: number;
    readonly outcomes: Readonly<Record<string, number>>;
    readonly failures: Readonly<Record<string, number>>;
  };
  readonly history: HistoryStats;
  /** `default` alone, if no clients are configured. */
  readonly clients: ClientList;
  /** The latest first. */
  readonly errors: readonly ListedError[];
  /** Empty: all files were in order when they were last read. */
  readonly file_faults: readonly FileFault[];
};

/** A request waits for MySQL, runs there, streams its reply, or has a reader that takes nothing of the reply. */
export type LivePhase = 'waiting' | 'running' | 'streaming' | 'stalled';

/** A request in flight, as its worker reports it. */
export type LiveRequest = {
  /** Unique in its worker. */
  readonly id: number;
  readonly request_id: string;
  /** Null: the request is part of no trace. */
  readonly trace_id: string | null;
  readonly age_ms: number;
  readonly phase: LivePhase;
  /** The client's name. */
  readonly client: string;
  /** The `sub` of its JSON Web Token; null: it has sent none. */
  readonly user: string | null;
  /** The client's address; null: it uses a unix socket, or has gone. */
  readonly address: string | null;
  /** The server that runs it; null: none yet. */
  readonly backend: string | null;
  readonly section: string;
  /** The named statement that it calls; null: none, or several. */
  readonly named: string | null;
  /** The tool that an agent calls; null: the request calls none. */
  readonly tool: string | null;
  /** Its statements without literals; null: there are none, or the client may not see them. */
  readonly shape: string | null;
};

/** The requests in flight in one worker. */
export type LiveRequests = {
  /** The oldest first, at most `maxListedRequests`. */
  readonly requests: readonly LiveRequest[];
  /** How many more there are. */
  readonly omitted: number;
};

/** A request in flight, as /v1/requests lists it. */
export type ListedRequest = Omit<LiveRequest, 'id'> & {
  /** Unique in the instance. */
  readonly id: string;
  /** The number of its worker. */
  readonly worker: number;
};

/** All requests in flight, the oldest first. */
export type RequestList = {
  readonly requests: readonly ListedRequest[];
  readonly omitted: number;
  /** The numbers of workers that did not answer in time. */
  readonly silent_workers: readonly number[];
};

/** The limit on requests in a worker's report. */
export const maxListedRequests = 500;

/** A failed request, without literals and texts of the server. */
export type RecentError = {
  /** When the request ended: ISO 8601, in UTC. */
  readonly at: string;
  readonly request_id: string;
  /** Null: the request is part of no trace. */
  readonly trace_id: string | null;
  /** The client's name. Null: the request was rejected before it was known. */
  readonly client: string | null;
  /** The `sub` of its JSON Web Token; null: it has sent none. */
  readonly user: string | null;
  /** Null: the request was rejected before its section was known. */
  readonly section: string | null;
  /** The named statement that it called; null: none, or several. */
  readonly named: string | null;
  /** The tool that an agent called; null: the request called none. */
  readonly tool: string | null;
  readonly status: number;
  /** Null: MySQL rejected the statement. */
  readonly code: FailureCode | null;
  /** The number of MySQL's error; null: it is not an error of MySQL. */
  readonly errno: number | null;
  /** Its name, such as ER_DUP_ENTRY; null as `errno`. */
  readonly error_name: string | null;
  /** Whether the data refused the request, as a duplicate key does. */
  readonly by_data: boolean;
  readonly outcome: RequestOutcome;
  /** Its statements without literals; null: they are not known. */
  readonly shape: string | null;
};

/** A failed request, as /v1/stats lists it. */
export type ListedError = RecentError & {
  /** The number of its worker. */
  readonly worker: number;
  /** The meaning of its code or of MySQL's number, as a clause for people. */
  readonly meaning: string;
};

/** How many of the latest errors are kept. */
export const maxRecentErrors = 50;

// The table of all metrics, and the form in which a worker reports them.

/** One metric's type and texts. */
export type Definition = {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
};

const durationBuckets = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/** For delays of an event loop: timers count whole milliseconds. */
export const lagBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const;

/** The parts of a request's time that are measured. */
export const timedPhases = ['waiting', 'connecting', 'first_row'] as const;

export type TimedPhase = (typeof timedPhases)[number];

/** The metrics of workers. The supervisor adds the labels `section` and `slot` to every sample. */
export const workerMetrics = {
  dbhttpd_requests_total: {
    type: 'counter',
    help: 'Requests answered, by endpoint and status class.',
    labels: ['endpoint', 'status'],
  },
  dbhttpd_request_duration_seconds: {
    type: 'histogram',
    help: 'From the last byte of a database request to the end of its reply. Requests that were not executed do not count.',
    labels: [],
    buckets: durationBuckets,
  },
  dbhttpd_phase_duration_seconds: {
    type: 'histogram',
    help:
      'Parts of that time. `waiting`: for a connection or a server, of every request that was executed. `connecting`: until a MySQL connection was ' +
      'open, of requests that waited for one. `first_row`: from sending the statement to MySQL to its first row or answer, of requests ' +
      'that reached MySQL; for a batch, to the end of its first statement.',
    labels: ['phase'],
    buckets: durationBuckets,
  },
  dbhttpd_outcomes_total: {
    type: 'counter',
    help: 'Database requests: ok, error (MySQL refused a statement), or their OUTCOME.',
    labels: ['outcome'],
  },
  dbhttpd_data_refusals_total: {
    type: 'counter',
    help: 'Database requests that the data refused: a duplicate key, a foreign key, CHECK, SIGNAL, `expect`, `max_affected`, and a `:one` that did not find exactly one row. The outcomes count them too.',
    labels: [],
  },
  dbhttpd_failures_total: {
    type: 'counter',
    help: 'Requests refused or ended by the gateway, by the CODE of their reply, whether or not it could be sent.',
    labels: ['code'],
  },
  dbhttpd_tool_calls_total: {
    type: 'counter',
    help: "Calls of agents' tools (`/mcp`), by tool. `result` is `ok`, or `error`: the result says why.",
    labels: ['tool', 'result'],
  },
  dbhttpd_replies_cut_total: {
    type: 'counter',
    help: 'Replies that had begun and that the gateway reset, because of max_result_bytes, a lost database or a stalled reader.',
    labels: [],
  },
  dbhttpd_readers_given_up_total: {
    type: 'counter',
    help: 'Replies that were reset because their readers were slow while other requests waited for a connection.',
    labels: [],
  },
  dbhttpd_named_calls_total: {
    type: 'counter',
    help: 'Calls of each named statement of the files that had a result, and those that failed.',
    labels: ['name', 'result'],
  },
  dbhttpd_named_seconds_total: {
    type: 'counter',
    help: 'Time for which the database has worked on each named statement.',
    labels: ['name'],
  },
  dbhttpd_rows_total: { type: 'counter', help: 'Rows sent to clients.', labels: [] },
  dbhttpd_reply_bytes_total: { type: 'counter', help: 'Bytes of reply bodies.', labels: [] },
  dbhttpd_client_requests_total: {
    type: 'counter',
    help: 'Database requests of each client, by outcome as in dbhttpd_outcomes_total.',
    labels: ['client', 'outcome'],
  },
  dbhttpd_client_refused_total: {
    type: 'counter',
    help:
      'Requests of each client that the gateway refused. FORBIDDEN, READ_ONLY: it may not do that. CLIENT_BUSY: more of its requests waited ' +
      'than its `queue`. QUEUE_FULL, WAITED_TOO_LONG: as for any client.',
    labels: ['client', 'code'],
  },
  dbhttpd_client_held_seconds_total: {
    type: 'counter',
    help: 'Time for which requests of each client have held connections, running ones included. Its rate is how many connections the client uses.',
    labels: ['client'],
  },
  dbhttpd_client_reply_bytes_total: {
    type: 'counter',
    help: 'Bytes of reply bodies of database requests, by client.',
    labels: ['client'],
  },
  dbhttpd_client_requests_in_flight: {
    type: 'gauge',
    help: 'Requests of each client that run now. A transaction that is held counts.',
    labels: ['client'],
  },
  dbhttpd_client_requests_waiting: {
    type: 'gauge',
    help: 'Requests of each client that wait now.',
    labels: ['client'],
  },
  dbhttpd_requests_in_flight: {
    type: 'gauge',
    help: 'Requests being answered now.',
    labels: [],
  },
  dbhttpd_client_connections: {
    type: 'gauge',
    help: 'Clients connected now, idle ones included.',
    labels: [],
  },
  dbhttpd_client_connections_refused_total: {
    type: 'counter',
    help: 'Clients refused because too many were connected.',
    labels: [],
  },
  dbhttpd_descriptor_shortages_total: {
    type: 'counter',
    help: 'Seconds in which no file could be opened because no descriptor was free, and accepts that failed.',
    labels: [],
  },
  dbhttpd_ready: {
    type: 'gauge',
    help: "Whether the worker's database serves what a client needs, as /readyz says: 1 or 0.",
    labels: [],
  },
  dbhttpd_unready: {
    type: 'gauge',
    help: '1 for the reason why the worker is not ready, 0 for all others.',
    labels: ['reason'],
  },
  dbhttpd_queue_length: {
    type: 'gauge',
    help: 'Requests that wait now: for a connection, for a shared connection, or for an identical read.',
    labels: ['backend'],
  },
  dbhttpd_queue_seconds_total: {
    type: 'counter',
    help: 'Time that requests spent waiting for a connection.',
    labels: [],
  },
  dbhttpd_pool_connections: {
    type: 'gauge',
    help: 'MySQL connections of the pool by state.',
    labels: ['backend', 'state'],
  },
  dbhttpd_pool_connections_max: {
    type: 'gauge',
    help: 'The limit on MySQL connections of the pool (pool).',
    labels: ['backend'],
  },
  dbhttpd_transactions_held: {
    type: 'gauge',
    help: 'Transactions that clients hold now, each with a connection of the pool: at most half of it.',
    labels: ['backend'],
  },
  dbhttpd_transactions_ended_total: {
    type: 'counter',
    help:
      'Transactions that clients held, by how they ended: committed, rolled_back, unknown (COMMIT has no answer), ended (by a statement ' +
      'or an error), stopped (with a statement), idle, too_old, lost, moved (their server is not to be used any more), stopping.',
    labels: ['end'],
  },
  dbhttpd_pipeline_statements_total: {
    type: 'counter',
    help: 'Quick reads that were pipelined on a shared connection.',
    labels: ['backend'],
  },
  dbhttpd_pipeline_reruns_total: {
    type: 'counter',
    help: 'Pipelined reads that ran again by themselves, because they were slow or large, or followed a statement that was not a clean read.',
    labels: ['backend'],
  },
  dbhttpd_pipeline_connections: {
    type: 'gauge',
    help: 'MySQL connections of the pool that are used for pipelining now.',
    labels: ['backend'],
  },
  dbhttpd_coalesced_requests_total: {
    type: 'counter',
    help: 'Requests answered by the execution of an identical one.',
    labels: [],
  },
  dbhttpd_connects_total: {
    type: 'counter',
    help: 'MySQL connections opened, by result.',
    labels: ['backend', 'result'],
  },
  dbhttpd_session_resets_total: {
    type: 'counter',
    help: 'Session resets, by result.',
    labels: ['backend', 'result'],
  },
  dbhttpd_log_lines_lost_total: {
    type: 'counter',
    help: 'Log lines that could not be written.',
    labels: [],
  },
  dbhttpd_access_log_lines_lost_total: {
    type: 'counter',
    help: 'Lines of the access log that could not be written.',
    labels: [],
  },
  dbhttpd_slow_statements_total: {
    type: 'counter',
    help: 'Requests whose statements ran longer than slow_query, or to their deadline.',
    labels: [],
  },
  dbhttpd_clients_gone_total: {
    type: 'counter',
    help: 'Database requests whose client went away before the reply was complete.',
    labels: [],
  },
  dbhttpd_kills_total: {
    type: 'counter',
    help: 'KILL QUERY sent, by result.',
    labels: ['backend', 'result'],
  },
  dbhttpd_backend_role: {
    type: 'gauge',
    help: 'The role of each of several servers, as a worker sees it: 1 for its role. `primary` gets writes; `unusable` is not used, and the log says why.',
    labels: ['backend', 'role'],
  },
  dbhttpd_backend_role_changes_total: {
    type: 'counter',
    help: "Changes of a server's role, the first one included.",
    labels: ['backend'],
  },
  dbhttpd_backend_lag_seconds: {
    type: 'gauge',
    help: 'How far a replica is behind its primary: the age of the first position that it does not have.',
    labels: ['backend'],
  },
  dbhttpd_no_primary: {
    type: 'gauge',
    help: 'Why a worker has no primary among several servers: 1 for the reason, which `/readyz` and the log explain. All are 0 while it has one.',
    labels: ['reason'],
  },
  dbhttpd_two_primaries: {
    type: 'gauge',
    help: '1 if several servers accept writes and it is not known which one is the primary: none gets writes.',
    labels: [],
  },
  dbhttpd_connect_errno: {
    type: 'gauge',
    help: "MySQL's number for why the worker cannot connect now, such as 1045; 0: it can, or the server gave no number.",
    labels: ['backend'],
  },
  dbhttpd_control_connected: {
    type: 'gauge',
    help: 'Whether the connection that kills statements is open: 1 or 0.',
    labels: ['backend'],
  },
  dbhttpd_statements_running_on: {
    type: 'gauge',
    help: 'Statements that were abandoned without a confirmed KILL and may still run.',
    labels: ['backend'],
  },
  process_cpu_seconds_total: {
    type: 'counter',
    help: 'User and system CPU time of the worker.',
    labels: [],
  },
  process_resident_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory of the worker.',
    labels: [],
  },
  nodejs_heap_size_used_bytes: {
    type: 'gauge',
    help: 'Memory of the objects of the worker in the heap of V8, garbage included.',
    labels: [],
  },
  nodejs_heap_size_limit_bytes: {
    type: 'gauge',
    help: 'The limit on the memory of the objects of the worker. A worker beyond it ends and is replaced.',
    labels: [],
  },
  nodejs_external_memory_bytes: {
    type: 'gauge',
    help: 'Memory of the worker outside of the heap, mostly buffers.',
    labels: [],
  },
  dbhttpd_event_loop_lag_seconds: {
    type: 'histogram',
    help: 'By how much the event loop of the worker was late, sampled five times a second: how long an arriving request waits before the worker reads it.',
    labels: [],
    buckets: lagBuckets,
  },
  dbhttpd_event_loop_lag_max_seconds: {
    type: 'gauge',
    help: 'The longest of these delays in the last ten seconds.',
    labels: [],
  },
  dbhttpd_webassembly_rows: {
    type: 'gauge',
    help: 'Whether the worker writes rows with WebAssembly: 1 or 0. Without it, large results cost more than twice the CPU.',
    labels: [],
  },
  process_open_fds: {
    type: 'gauge',
    help: 'Descriptors that the worker has open, counted every 5 s.',
    labels: [],
  },
  process_max_fds: {
    type: 'gauge',
    help: 'The limit on descriptors of the worker.',
    labels: [],
  },
} as const satisfies Record<string, Definition>;

export type WorkerMetric = keyof typeof workerMetrics;

/** One value of a counter or gauge. */
export type Sample = {
  readonly metric: WorkerMetric;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** One histogram: observations per bucket (not cumulative; the last is +Inf), their sum and number. */
export type HistogramSample = {
  readonly metric: WorkerMetric;
  readonly labels: Readonly<Record<string, string>>;
  readonly counts: readonly number[];
  readonly sum: number;
};

/** All metrics of one worker at one moment. */
export type Snapshot = {
  readonly samples: readonly Sample[];
  readonly histograms: readonly HistogramSample[];
};

/** The calls of one named statement, and the time for which the database has worked on them. */
export type NamedCounts = {
  readonly ok: number;
  readonly failed: number;
  readonly seconds: number;
};

/** The samples of one named statement: all that have the label `name`. */
export function namedSamples(
  section: string,
  name: string,
  { ok, failed, seconds }: NamedCounts,
): readonly Sample[] {
  const calls = (result: string, value: number): Sample => ({
    metric: 'dbhttpd_named_calls_total',
    labels: { section, name, result },
    value,
  });
  return [
    calls('ok', ok),
    calls('failed', failed),
    { metric: 'dbhttpd_named_seconds_total', labels: { section, name }, value: seconds },
  ];
}

/** The metrics of the supervisor. */
export const supervisorMetrics = {
  dbhttpd_build_info: {
    type: 'gauge',
    help: 'Always 1: the version of dbhttpd and of Node.',
    labels: ['version', 'node'],
  },
  process_start_time_seconds: {
    type: 'gauge',
    help: 'When the supervisor was started, in seconds since 1970.',
    labels: [],
  },
  dbhttpd_worker_up: {
    type: 'gauge',
    help: 'Whether the slot has a worker that listens: 1 or 0.',
    labels: ['slot'],
  },
  dbhttpd_worker_restarts_total: {
    type: 'counter',
    help: 'Workers started in the slot after its first.',
    labels: ['slot'],
  },
  dbhttpd_requests_lost_total: {
    type: 'counter',
    help: 'Requests that were in flight when their worker died, by its last report, at most a second before.',
    labels: ['slot'],
  },
  dbhttpd_worker_version_mismatch: {
    type: 'gauge',
    help: 'Whether the worker runs other code than its supervisor, as after an update without a restart: 1 or 0.',
    labels: ['slot'],
  },
  dbhttpd_workers_silent: {
    type: 'gauge',
    help: 'Workers that did not answer this scrape in time; their last known values are shown.',
    labels: [],
  },
  dbhttpd_supervisor_log_lines_lost_total: {
    type: 'counter',
    help: 'Log lines of the supervisor that could not be written.',
    labels: [],
  },
  dbhttpd_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    help: 'When a certificate in use expires, in seconds since 1970, by the key that names its file; of `tls_ca` the last one of the file.',
    labels: ['key'],
  },
  dbhttpd_client_expiry_timestamp_seconds: {
    type: 'gauge',
    help: 'The moment from which on a client of the clients file is rejected (expires), in seconds since 1970.',
    labels: ['client'],
  },
  dbhttpd_file_faults: {
    type: 'gauge',
    help: 'Faults of the file that the key names, when it was last read: what the file held before stays in use, and the log has the faults.',
    labels: ['key'],
  },
  dbhttpd_primary_memories_unsaved: {
    type: 'gauge',
    help: 'Sections whose memory of the last primary cannot be written to `state_dir`. It is lost when the instance ends. The log says why.',
    labels: [],
  },
  dbhttpd_supervisor_cpu_seconds_total: {
    type: 'counter',
    help: 'User and system CPU time of the supervisor.',
    labels: [],
  },
  dbhttpd_supervisor_resident_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory of the supervisor.',
    labels: [],
  },
  dbhttpd_supervisor_heap_used_bytes: {
    type: 'gauge',
    help: 'Memory of the objects of the supervisor, garbage included.',
    labels: [],
  },
  dbhttpd_supervisor_event_loop_lag_seconds: {
    type: 'histogram',
    help: 'By how much the event loop of the supervisor was late, sampled five times a second.',
    labels: [],
    buckets: lagBuckets,
  },
} as const satisfies Record<string, Definition>;

/** A histogram: an array of counts and a sum, which only a snapshot reads. */
export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds upper ends of the buckets in seconds, ascending; what is longer has a bucket of its own */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(seconds: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && seconds > (bounds[index] as number)) index += 1;
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#sum += seconds;
  }

  /** Observations per bucket (not cumulative), and the sum of all in seconds. */
  read(): { readonly counts: readonly number[]; readonly sum: number } {
    return { counts: [...this.#counts], sum: this.#sum };
  }
}

// The metrics of one worker as plain numbers: its own, its sections' and its servers'. The supervisor reads them as snapshots.

import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { failureCodes, isDataRefusal, outcomes, unreadyCodes } from '../../shared/failure-codes.ts';
import {
  DurationHistogram,
  type HistogramSample,
  namedSamples,
  type Sample,
  type TimedPhase,
  timedPhases,
  type WorkerMetric,
  workerMetrics,
} from '../../shared/observe/metrics.ts';
import { type NoPrimary, noPrimaryReasons } from '../../shared/servers/judge.ts';
import type { PipelineObservations } from '../execution/pipeline/pipeline.ts';
import { type TransactionEnd, transactionEnds } from '../execution/transaction-end.ts';
import type { ReadyAnswer } from '../servers/pool/readiness.ts';
import type { ServerObservations } from '../servers/server.ts';
import type { ServerStatus } from '../servers/tracked-candidate.ts';
import {
  type Endpoint,
  type ExchangeSummary,
  endpoints,
  isSlow,
  type Observation,
  type RequestRecord,
} from './observation.ts';

/** One value of a metric. */
export function sample(
  metric: WorkerMetric,
  value: number,
  labels: Readonly<Record<string, string>> = {},
): Sample {
  return { metric, labels, value };
}

/** Counters by name, which start at 0: a rate over a series that appears with its first event shows nothing. */
function startAtZero<Name extends string>(names: readonly Name[]): Map<Name, number> {
  return new Map(names.map((name) => [name, 0]));
}

function countOne<Name>(counts: Map<Name, number>, name: Name): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

const { buckets } = workerMetrics.dbhttpd_request_duration_seconds;
const phaseBuckets = workerMetrics.dbhttpd_phase_duration_seconds.buckets;

/** The counters of one section: fields and typed arrays, which only a snapshot reads. */
export class SectionMetrics {
  readersGivenUp = 0;
  #rows = 0;
  #replyBytes = 0;
  #queueSeconds = 0;
  #clientsGone = 0;
  #slowStatements = 0;
  #cutReplies = 0;
  #dataRefusals = 0;
  readonly #section: string;
  readonly #slowMs: number;
  readonly #durations = new DurationHistogram(buckets);
  readonly #phases: Readonly<Record<TimedPhase, DurationHistogram>> = {
    waiting: new DurationHistogram(phaseBuckets),
    connecting: new DurationHistogram(phaseBuckets),
    first_row: new DurationHistogram(phaseBuckets),
  };
  readonly #outcomes = startAtZero(outcomes);
  readonly #transactionEnds = startAtZero(transactionEnds);
  /** The calls of named statements that were called: the supervisor adds the others at 0. Their names are those of the operator's files. */
  readonly #named = new Map<string, { ok: number; failed: number; seconds: number }>();

  /** @param slowMs statements that run for at least this long are slow; 0: none is */
  constructor(section: string, slowMs: number) {
    this.#section = section;
    this.#slowMs = slowMs;
  }

  /** Counts a request's statements; to be called when they are over. */
  count(summary: ExchangeSummary): void {
    if (isSlow(summary, this.#slowMs)) this.#slowStatements += 1;
    if (summary.clientGone) this.#clientsGone += 1;
    if (summary.wasCut) this.#cutReplies += 1;
    this.#rows += summary.rows;
    this.#replyBytes += summary.bytes;
    this.#queueSeconds += summary.queueMs / 1000;
    countOne(this.#outcomes, summary.outcome);
    if (summary.named !== null) this.#countNamed(summary.named, summary);
    if (isDataRefusal(summary.code, summary.errno)) this.#dataRefusals += 1;
    // Refusals are quick: if they counted, thousands of them would make an overload look fast.
    if (summary.outcome === 'not_executed') return;
    this.#durations.observe(summary.durationMs / 1000);
    this.#countPhases(summary);
  }

  #countNamed(name: string, { outcome, databaseMs }: ExchangeSummary): void {
    const counts = this.#named.get(name) ?? { ok: 0, failed: 0, seconds: 0 };
    this.#named.set(name, counts);
    counts[outcome === 'ok' ? 'ok' : 'failed'] += 1;
    counts.seconds += databaseMs / 1000;
  }

  /** Counts a transaction that a client held; to be called when it has ended. */
  transactionEnded(end: TransactionEnd): void {
    countOne(this.#transactionEnds, end);
  }

  /** A phase that a request did not have is not counted as 0 s. */
  #countPhases({ queueMs, connectingMs, databaseMs, firstRowMs }: ExchangeSummary): void {
    this.#phases.waiting.observe((queueMs - connectingMs) / 1000);
    if (connectingMs > 0) this.#phases.connecting.observe(connectingMs / 1000);
    if (databaseMs > 0) this.#phases.first_row.observe(firstRowMs / 1000);
  }

  /** @param coalesced how many requests were answered by the execution of another one */
  samples(readiness: ReadyAnswer, coalesced: number): readonly Sample[] {
    const section = this.#section;
    const reason = readiness.isReady ? null : readiness.code;
    return [
      ...[...this.#outcomes].map(([outcome, value]) =>
        sample('dbhttpd_outcomes_total', value, { section, outcome }),
      ),
      sample('dbhttpd_data_refusals_total', this.#dataRefusals, { section }),
      ...[...this.#transactionEnds].map(([end, value]) =>
        sample('dbhttpd_transactions_ended_total', value, { section, end }),
      ),
      ...[...this.#named].flatMap(([name, counts]) => namedSamples(section, name, counts)),
      sample('dbhttpd_replies_cut_total', this.#cutReplies, { section }),
      sample('dbhttpd_readers_given_up_total', this.readersGivenUp, { section }),
      sample('dbhttpd_rows_total', this.#rows, { section }),
      sample('dbhttpd_reply_bytes_total', this.#replyBytes, { section }),
      sample('dbhttpd_queue_seconds_total', this.#queueSeconds, { section }),
      sample('dbhttpd_clients_gone_total', this.#clientsGone, { section }),
      sample('dbhttpd_slow_statements_total', this.#slowStatements, { section }),
      sample('dbhttpd_coalesced_requests_total', coalesced, { section }),
      sample('dbhttpd_ready', readiness.isReady ? 1 : 0, { section }),
      ...unreadyCodes.map((code) =>
        sample('dbhttpd_unready', code === reason ? 1 : 0, { section, reason: code }),
      ),
    ];
  }

  histograms(): readonly HistogramSample[] {
    const section = this.#section;
    return [
      {
        metric: 'dbhttpd_request_duration_seconds',
        labels: { section },
        ...this.#durations.read(),
      },
      ...timedPhases.map(
        (phase): HistogramSample => ({
          metric: 'dbhttpd_phase_duration_seconds',
          labels: { section, phase },
          ...this.#phases[phase].read(),
        }),
      ),
    ];
  }
}

const noPipeline: PipelineObservations = { statements: 0, reruns: 0, connections: 0 };
const roles = ['primary', 'replica', 'unusable'] as const;

/** A server's role, as the worker sees it; for sections with several servers. */
export function statusSamples(
  section: string,
  backend: string,
  { role, lagMs, changes }: ServerStatus,
): readonly Sample[] {
  return [
    ...roles.map((one) =>
      sample('dbhttpd_backend_role', one === role ? 1 : 0, { section, backend, role: one }),
    ),
    sample('dbhttpd_backend_role_changes_total', changes, { section, backend }),
    ...(lagMs === null
      ? []
      : [sample('dbhttpd_backend_lag_seconds', lagMs / 1000, { section, backend })]),
  ];
}

/** One series for each reason why the worker has no primary. @param none null: it has one */
export function noPrimarySamples(section: string, none: NoPrimary | null): readonly Sample[] {
  return noPrimaryReasons.map((reason) =>
    sample('dbhttpd_no_primary', none?.reason === reason ? 1 : 0, { section, reason }),
  );
}

/** The samples of one server of a section. */
export function backendSamples(
  section: string,
  { address: backend, pool, reserved, control, connectErrno }: ServerObservations,
  pipeline: PipelineObservations = noPipeline,
): readonly Sample[] {
  const one = (metric: WorkerMetric, value: number, labels = {}) =>
    sample(metric, value, { section, backend, ...labels });
  const state = (name: string, value: number) =>
    one('dbhttpd_pool_connections', value, { state: name });
  const results = (metric: WorkerMetric, ok: number, failed: number) => [
    one(metric, ok, { result: 'ok' }),
    one(metric, failed, { result: 'failed' }),
  ];
  return [
    one('dbhttpd_queue_length', pool.waiting),
    state('idle', pool.idle),
    state('busy', pool.busy),
    state('resetting', pool.resetting),
    state('connecting', pool.connecting),
    one('dbhttpd_pool_connections_max', pool.size),
    one('dbhttpd_transactions_held', reserved),
    ...results('dbhttpd_connects_total', pool.connectsOk, pool.connectsFailed),
    ...results('dbhttpd_session_resets_total', pool.resetsOk, pool.resetsFailed),
    one('dbhttpd_pipeline_statements_total', pipeline.statements),
    one('dbhttpd_pipeline_reruns_total', pipeline.reruns),
    one('dbhttpd_pipeline_connections', pipeline.connections),
    one('dbhttpd_connect_errno', connectErrno ?? 0),
    one('dbhttpd_control_connected', control.connected ? 1 : 0),
    one('dbhttpd_statements_running_on', control.runningOn),
    ...results('dbhttpd_kills_total', control.killsOk, control.killsFailed),
  ];
}

const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
/** Status classes whose series start at 0. */
const usual: ReadonlySet<string> = new Set(['2xx', '4xx', '5xx']);

/** Listing thousands of descriptors takes milliseconds: not every second. */
const countDescriptorsMs = 5_000;

/** The counts of the HTTP server: requests in flight, open connections, and connections refused so far. */
export type ClientFigures = {
  readonly inFlight: number;
  readonly open: number;
  readonly refused: number;
};

/** The counters of one worker: fields and typed arrays, which only a snapshot reads. */
export class WorkerMetrics {
  descriptorShortages = 0;
  #memory = { rss: 0, heapUsed: 0, external: 0 };
  readonly #heapLimitBytes = getHeapStatistics().heap_size_limit;
  readonly #requests = new Map<Endpoint, Float64Array>(
    endpoints.map((endpoint) => [endpoint, new Float64Array(statusClasses.length)]),
  );
  readonly #failures = startAtZero(failureCodes);
  readonly #tools: Map<string, { ok: number; error: number }>;
  readonly #maxDescriptors: number;
  #descriptors = 0;
  #descriptorsCountedAt = Number.NEGATIVE_INFINITY;

  /** @param maxDescriptors the process's limit of open files  @param tools those whose series start at 0 */
  constructor(maxDescriptors: number, tools: readonly string[] = []) {
    this.#maxDescriptors = maxDescriptors;
    this.#tools = new Map(tools.map((tool) => [tool, { ok: 0, error: 0 }]));
  }

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'reply complete':
        this.#countRequest(observation.endpoint, observation.status);
        return;
      case 'request finished':
        if (observation.record.code !== null) countOne(this.#failures, observation.record.code);
        if (observation.record.tool !== null) this.#countTool(observation.record);
        return;
      case 'failure hidden':
        return;
      case 'malformed request':
        this.#countRequest('other', observation.refused.status);
        countOne(this.#failures, observation.refused.code);
        return;
      case 'statements finished':
      case 'exception':
        return;
      default:
        observation satisfies never;
    }
  }

  #countTool({ tool, toolFailed }: RequestRecord): void {
    if (tool === null) return;
    const counts = this.#tools.get(tool) ?? { ok: 0, error: 0 };
    this.#tools.set(tool, counts);
    counts[toolFailed ? 'error' : 'ok'] += 1;
  }

  #countRequest(endpoint: Endpoint, status: number): void {
    const counts = this.#requests.get(endpoint) as Float64Array;
    const index = Math.floor(status / 100) - 1;
    counts[index] = (counts[index] ?? 0) + 1;
  }

  /** All counters, and what the process uses now. */
  samples(clients: ClientFigures): readonly Sample[] {
    const cpu = process.cpuUsage();
    const { rss, heapUsed, external } = this.#readMemory();
    return [
      ...this.#requestSamples(),
      ...[...this.#failures].map(([code, value]) =>
        sample('dbhttpd_failures_total', value, { code }),
      ),
      ...[...this.#tools].flatMap(([tool, counts]) =>
        (['ok', 'error'] as const).map((result) =>
          sample('dbhttpd_tool_calls_total', counts[result], { tool, result }),
        ),
      ),
      sample('dbhttpd_requests_in_flight', clients.inFlight),
      sample('dbhttpd_client_connections', clients.open),
      sample('dbhttpd_client_connections_refused_total', clients.refused),
      sample('dbhttpd_descriptor_shortages_total', this.descriptorShortages),
      sample('process_cpu_seconds_total', (cpu.user + cpu.system) / 1e6),
      sample('process_resident_memory_bytes', rss),
      sample('nodejs_heap_size_used_bytes', heapUsed),
      sample('nodejs_heap_size_limit_bytes', this.#heapLimitBytes),
      sample('nodejs_external_memory_bytes', external),
      sample('process_open_fds', this.#countDescriptors(performance.now())),
      sample('process_max_fds', this.#maxDescriptors),
    ];
  }

  /** Reading it opens a file. If there is no descriptor for that, the last answer remains. */
  #readMemory() {
    try {
      this.#memory = process.memoryUsage();
    } catch {
      // EMFILE or ENFILE. This is the only sign of it: libuv silently closes connections that it cannot accept.
      this.descriptorShortages += 1;
    }
    return this.#memory;
  }

  #countDescriptors(now: number): number {
    if (now - this.#descriptorsCountedAt < countDescriptorsMs) return this.#descriptors;
    this.#descriptorsCountedAt = now;
    try {
      // Listing takes a descriptor of its own.
      this.#descriptors = readdirSync('/proc/self/fd').length - 1;
    } catch (error) {
      // EMFILE: all descriptors are in use.
      if ((error as NodeJS.ErrnoException).code === 'EMFILE') {
        this.#descriptors = this.#maxDescriptors;
      }
    }
    return this.#descriptors;
  }

  #requestSamples(): Sample[] {
    return [...this.#requests].flatMap(([endpoint, counts]) =>
      statusClasses.flatMap((status, index) => {
        const value = counts[index] as number;
        return value === 0 && !usual.has(status)
          ? []
          : [sample('dbhttpd_requests_total', value, { endpoint, status })];
      }),
    );
  }
}

// What one worker counts, as plain numbers; a snapshot of it for the supervisor.
// Must not know prom-client, nor who asks.
import { performance } from 'node:perf_hooks';
import {
  type FailureCode,
  failureCodes,
  outcomes,
  type RequestOutcome,
  unreadyCodes,
} from '../../shared/failure-codes.ts';
import {
  type HistogramSample,
  type Sample,
  type Snapshot,
  type WorkerMetric,
  workerMetrics,
} from '../../shared/process/metrics.ts';
import type { ControlObservations } from '../backend/control.ts';
import type { PoolObservations } from '../backend/pool.ts';
import type { ReadyAnswer } from '../backend/readiness.ts';
import type { PipelineObservations } from '../execute/pipeline.ts';
import type { BackendObservations } from '../section/backend.ts';
import type { ExchangeSummary } from './exchange-summary.ts';
import type { Observation } from './observation.ts';
import { OpenDescriptors } from './open-descriptors.ts';
import { type Endpoint, endpoints } from './request-record.ts';
import { isSlow } from './slow-statements.ts';

const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
/** Those that stand there before their first event: a rate over a series that appears shows nothing. */
const usual: ReadonlySet<string> = new Set(['2xx', '4xx', '5xx']);
const buckets = workerMetrics.dbhttpd_request_duration_seconds.buckets;

/** The HTTP server's own figures: requests being answered, connections open, connections turned away so far. */
export type ClientFigures = {
  readonly inFlight: number;
  readonly open: number;
  readonly refused: number;
};

/** Counters of one worker. Everything is a field or a typed array, read only when a snapshot is asked for. */
export class WorkerMetrics {
  rows = 0;
  replyBytes = 0;
  queueSeconds = 0;
  clientsGone = 0;
  slowStatements = 0;
  coalesced = 0;
  cutReplies = 0;
  readersGivenUp = 0;
  readiness: ReadyAnswer = { isReady: false, code: 'STARTING', errno: null };
  descriptorShortages = 0;
  readonly #slowMs: number;
  readonly #durations = new Float64Array(buckets.length + 1);
  #durationSum = 0;
  #residentBytes = 0;
  readonly #requests = new Map<Endpoint, Float64Array>(
    endpoints.map((endpoint) => [endpoint, new Float64Array(statusClasses.length)]),
  );
  readonly #outcomes = startAtZero(outcomes);
  readonly #failures = startAtZero(failureCodes);
  readonly #descriptors = new OpenDescriptors();

  /** @param slowMs the running time from which statements are slow; 0: none is */
  constructor(slowMs: number) {
    this.#slowMs = slowMs;
  }

  observe(observation: Observation): void {
    switch (observation.kind) {
      case 'reply complete':
        this.#countRequest(observation.endpoint, observation.status);
        return;
      case 'request over':
        if (observation.record.code !== null) this.#countFailure(observation.record.code);
        return;
      case 'no request':
        this.#countRequest('other', observation.refused.status);
        this.#countFailure(observation.refused.code);
        return;
      case 'statements over':
        this.#countStatements(observation.summary);
        return;
      case 'exception':
        return;
      default:
        observation satisfies never;
    }
  }

  #countStatements(summary: ExchangeSummary): void {
    if (isSlow(summary, this.#slowMs)) this.slowStatements += 1;
    if (summary.clientGone) this.clientsGone += 1;
    if (summary.wasCut) this.cutReplies += 1;
    this.rows += summary.rows;
    this.replyBytes += summary.bytes;
    this.queueSeconds += summary.queueMs / 1000;
    this.#countOutcome(summary.outcome);
    this.#observeDuration(summary.durationMs / 1000);
  }

  #countRequest(endpoint: Endpoint, status: number): void {
    const counts = this.#requests.get(endpoint) as Float64Array;
    const index = Math.floor(status / 100) - 1;
    counts[index] = (counts[index] ?? 0) + 1;
  }

  #countOutcome(outcome: RequestOutcome): void {
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
  }

  #countFailure(code: FailureCode): void {
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
  }

  #observeDuration(seconds: number): void {
    let index = 0;
    while (index < buckets.length && seconds > (buckets[index] as number)) index += 1;
    this.#durations[index] = (this.#durations[index] as number) + 1;
    this.#durationSum += seconds;
  }

  /** Everything counted so far, with the pool's and the process's own figures. */
  snapshot({ pool, pipeline, control }: BackendObservations, clients: ClientFigures): Snapshot {
    const cpu = process.cpuUsage();
    const residentBytes = this.#readResidentBytes();
    return {
      samples: [
        ...this.#requestSamples(),
        ...[...this.#outcomes].map(([outcome, value]) =>
          sample('dbhttpd_outcomes_total', value, { outcome }),
        ),
        ...[...this.#failures].map(([code, value]) =>
          sample('dbhttpd_failures_total', value, { code }),
        ),
        sample('dbhttpd_replies_cut_total', this.cutReplies),
        sample('dbhttpd_readers_given_up_total', this.readersGivenUp),
        sample('dbhttpd_rows_total', this.rows),
        sample('dbhttpd_reply_bytes_total', this.replyBytes),
        sample('dbhttpd_queue_seconds_total', this.queueSeconds),
        sample('dbhttpd_requests_in_flight', clients.inFlight),
        sample('dbhttpd_client_connections', clients.open),
        sample('dbhttpd_client_connections_refused_total', clients.refused),
        sample('dbhttpd_clients_gone_total', this.clientsGone),
        sample('dbhttpd_slow_statements_total', this.slowStatements),
        ...readinessSamples(this.readiness),
        sample('dbhttpd_descriptor_shortages_total', this.descriptorShortages),
        sample('dbhttpd_queue_length', pool.waiting),
        ...poolSamples(pool),
        ...pipelineSamples(pipeline),
        sample('dbhttpd_coalesced_requests_total', this.coalesced),
        ...controlSamples(control),
        sample('process_cpu_seconds_total', (cpu.user + cpu.system) / 1e6),
        sample('process_resident_memory_bytes', residentBytes),
        sample('process_open_fds', this.#descriptors.count(performance.now())),
        sample('process_max_fds', this.#descriptors.most),
      ],
      histograms: [this.#durationHistogram()],
    };
  }

  /** The system is asked by opening a file: without a descriptor the last answer has to do. */
  #readResidentBytes(): number {
    try {
      this.#residentBytes = process.memoryUsage.rss();
    } catch {
      // EMFILE or ENFILE: the one sign of it, for libuv closes what it cannot accept without a word.
      this.descriptorShortages += 1;
    }
    return this.#residentBytes;
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

  #durationHistogram(): HistogramSample {
    return {
      metric: 'dbhttpd_request_duration_seconds',
      labels: {},
      counts: [...this.#durations],
      sum: this.#durationSum,
    };
  }
}

function startAtZero<Name extends string>(names: readonly Name[]): Map<Name, number> {
  return new Map(names.map((name) => [name, 0]));
}

function results(metric: WorkerMetric, ok: number, failed: number): Sample[] {
  return [sample(metric, ok, { result: 'ok' }), sample(metric, failed, { result: 'failed' })];
}

function controlSamples(control: ControlObservations): Sample[] {
  return [
    sample('dbhttpd_control_connected', control.connected ? 1 : 0),
    sample('dbhttpd_statements_running_on', control.runningOn),
    ...results('dbhttpd_kills_total', control.killsOk, control.killsFailed),
  ];
}

function readinessSamples(answer: ReadyAnswer): Sample[] {
  const reason = answer.isReady ? null : answer.code;
  return [
    sample('dbhttpd_ready', answer.isReady ? 1 : 0),
    ...unreadyCodes.map((code) =>
      sample('dbhttpd_unready', code === reason ? 1 : 0, { reason: code }),
    ),
  ];
}

function pipelineSamples(pipeline: PipelineObservations): Sample[] {
  return [
    sample('dbhttpd_pipeline_statements_total', pipeline.statements),
    sample('dbhttpd_pipeline_reruns_total', pipeline.reruns),
    sample('dbhttpd_pipeline_connections', pipeline.connections),
  ];
}

function poolSamples(pool: PoolObservations): Sample[] {
  const state = (name: string, value: number) =>
    sample('dbhttpd_pool_connections', value, { state: name });
  return [
    state('idle', pool.idle),
    state('busy', pool.busy),
    state('resetting', pool.resetting),
    state('connecting', pool.connecting),
    sample('dbhttpd_pool_connections_max', pool.size),
    ...results('dbhttpd_connects_total', pool.connectsOk, pool.connectsFailed),
    ...results('dbhttpd_session_resets_total', pool.resetsOk, pool.resetsFailed),
  ];
}

function sample(
  metric: WorkerMetric,
  value: number,
  labels: Readonly<Record<string, string>> = {},
): Sample {
  return { metric, labels, value };
}

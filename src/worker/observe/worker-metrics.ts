// What one worker counts, as plain numbers; a snapshot of it for the supervisor.
// Must not know prom-client, nor who asks.
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { type FailureCode, failureCodes } from '../../shared/failure-codes.ts';
import type { Sample } from '../../shared/observe/metrics.ts';
import type { Observation } from './observation.ts';
import { OpenDescriptors } from './open-descriptors.ts';
import { type Endpoint, endpoints } from './request-record.ts';
import { sample, startAtZero } from './samples.ts';

const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
/** Those that stand there before their first event: a rate over a series that appears shows nothing. */
const usual: ReadonlySet<string> = new Set(['2xx', '4xx', '5xx']);

/** The HTTP server's own figures: requests being answered, connections open, connections turned away so far. */
export type ClientFigures = {
  readonly inFlight: number;
  readonly open: number;
  readonly refused: number;
};

/** Counters of one worker. Everything is a field or a typed array, read only when a snapshot is asked for. */
export class WorkerMetrics {
  descriptorShortages = 0;
  #memory = { rss: 0, heapUsed: 0, external: 0 };
  readonly #heapLimitBytes = getHeapStatistics().heap_size_limit;
  readonly #requests = new Map<Endpoint, Float64Array>(
    endpoints.map((endpoint) => [endpoint, new Float64Array(statusClasses.length)]),
  );
  readonly #failures = startAtZero(failureCodes);
  readonly #descriptors = new OpenDescriptors();

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
      case 'exception':
        return;
      default:
        observation satisfies never;
    }
  }

  #countRequest(endpoint: Endpoint, status: number): void {
    const counts = this.#requests.get(endpoint) as Float64Array;
    const index = Math.floor(status / 100) - 1;
    counts[index] = (counts[index] ?? 0) + 1;
  }

  #countFailure(code: FailureCode): void {
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
  }

  /** Everything counted so far, with the process's own figures. */
  samples(clients: ClientFigures): readonly Sample[] {
    const cpu = process.cpuUsage();
    const { rss, heapUsed, external } = this.#readMemory();
    return [
      ...this.#requestSamples(),
      ...[...this.#failures].map(([code, value]) =>
        sample('dbhttpd_failures_total', value, { code }),
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
      sample('process_open_fds', this.#descriptors.count(performance.now())),
      sample('process_max_fds', this.#descriptors.most),
    ];
  }

  /** The system is asked by opening a file: without a descriptor the last answer has to do. */
  #readMemory() {
    try {
      this.#memory = process.memoryUsage();
    } catch {
      // EMFILE or ENFILE: the one sign of it, for libuv closes what it cannot accept without a word.
      this.descriptorShortages += 1;
    }
    return this.#memory;
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

// The metrics of all workers as one Prometheus text. Counters are summed over all workers since the start, the ended ones included.

import type { MetricObject, Registry } from 'prom-client';
import AggregatorRegistry from 'prom-client/lib/cluster.js';
import type { UsedCertificate } from '../../shared/config/certificates.ts';
import type { NamedStatement } from '../../shared/named/statement.ts';
import { measureEventLoopLag } from '../../shared/observe/event-loop-lag.ts';
import {
  type Definition,
  type HistogramSample,
  namedSamples,
  type Sample,
  type Snapshot,
  supervisorMetrics,
  workerMetrics,
} from '../../shared/observe/metrics.ts';
import type { FileFault } from '../../shared/observe/stats.ts';
import { version } from '../../shared/process/build.ts';
import type { ExpiringClient } from './expiry-watch.ts';
import { type Reported, readCounts, type SlotState } from './stats.ts';

/** The metrics of one instance. */
export type Totals = {
  /** Keeps the latest snapshot of a living worker. */
  readonly update: (slot: number, snapshot: Snapshot) => void;
  /** Adds the last counters of a worker that has ended to the sums of its slot. Its gauges end with it. */
  readonly retire: (slot: number) => void;
  readonly reported: () => Reported;
  /** Renders all metrics as Prometheus text. */
  readonly render: (state: SupervisorState) => Promise<string>;
  /** Requests, failures and outcomes since the last rendering, which no scrape has seen. */
  readonly unseen: () => Readonly<Record<string, number>>;
};

/** The supervisor's knowledge of itself and its slots. */
export type SupervisorState = {
  readonly slots: readonly SlotState[];
  readonly silent: number;
  readonly logLinesLost: number;
  /** Those in use. */
  readonly certificates: readonly UsedCertificate[];
  readonly expiringClients: readonly ExpiringClient[];
  /** The keys that name files of credentials. */
  readonly renewedKeys: readonly string[];
  readonly fileFaults: readonly FileFault[];
  /** How many sections have a memory of the last primary that does not outlive the instance. */
  readonly primariesUnsaved: number;
  /** The named statements in force. */
  readonly named: NamesBySection;
  /** Seconds since 1970. */
  readonly startedAt: number;
  readonly own: OwnFigures;
};

type NamesBySection = Readonly<Record<string, readonly Pick<NamedStatement, 'name'>[]>>;

/** CPU time and memory of the supervisor's process, and the delays of its event loop. */
export type OwnFigures = {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  readonly lag: Pick<HistogramSample, 'counts' | 'sum'>;
};

type Labels = Readonly<Record<string, string>>;
type Value = { readonly labels: Labels; readonly value: number; readonly metricName?: string };

/** Creates empty totals; `section` labels every sample. */
export function createTotals(section: string): Totals {
  const past = new Map<number, Snapshot>();
  const present = new Map<number, Snapshot>();
  const reported = () => ({ past: [...past.values()], present });
  const count = () => summarize(reported());
  let seen = count();
  return {
    update: (slot, snapshot) => {
      present.set(slot, snapshot);
      const ended = past.get(slot);
      if (ended !== undefined) past.set(slot, withoutRemovedClients(ended, snapshot));
    },
    retire: (slot) => {
      const last = present.get(slot);
      if (last === undefined) return;
      present.delete(slot);
      past.set(slot, addSnapshots(past.get(slot), countersOf(last)));
    },
    reported,
    render: (state) => {
      const slots = state.slots.map(({ slot }) => ({
        labels: { section, slot: String(slot) },
        snapshot: withNamedStatements(
          addSnapshots(past.get(slot), present.get(slot) ?? { samples: [], histograms: [] }),
          state.named,
        ),
      }));
      const metrics = [...workerValues(slots), ...supervisorValues(section, state)];
      seen = count();
      const registry: Registry = AggregatorRegistry.aggregate([
        metrics as unknown as MetricObject[],
      ]);
      return registry.metrics();
    },
    unseen: () => {
      const entries = Object.entries(count()).map(([name, value]) => [
        name,
        value - (seen[name] ?? 0),
      ]);
      return Object.fromEntries(entries);
    },
  };
}

/** The counts of the last log line: all requests, all failures, and each outcome by its name. */
function summarize(reported: Reported): Readonly<Record<string, number>> {
  const { requests, failures, outcomes } = readCounts(reported);
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
  return { requests, failures: failed, ...outcomes };
}

/**
 * The sums of ended workers without clients that the clients file has no more: a living worker reports all that it has. Otherwise a gateway
 * whose file changes every day would report more series every day.
 */
function withoutRemovedClients(ended: Snapshot, living: Snapshot): Snapshot {
  const clients = new Set(living.samples.map(({ labels }) => labels.client));
  const samples = ended.samples.filter(
    ({ labels: { client } }) => client === undefined || clients.has(client),
  );
  return samples.length === ended.samples.length ? ended : { ...ended, samples };
}

const notCalled = { ok: 0, failed: 0, seconds: 0 };

/**
 * The same with the counts of exactly the named statements in force. A worker reports those that were called: here the others stand at 0,
 * because thousands of zeroes in each report of each worker would cost more than the calls.
 */
function withNamedStatements(snapshot: Snapshot, named: NamesBySection): Snapshot {
  const sections = new Map(
    Object.entries(named).flatMap(([section, statements]) =>
      statements.map(({ name }) => [name, section]),
    ),
  );
  const samples: Sample[] = [];
  const called = new Set<string>();
  for (const sample of snapshot.samples) {
    const { name, section } = sample.labels;
    const isNamed = name !== undefined;
    if (isNamed && sections.get(name) !== section) continue;
    if (isNamed) called.add(name);
    samples.push(sample);
  }
  for (const [name, section] of sections) {
    if (!called.has(name)) samples.push(...namedSamples(section, name, notCalled));
  }
  return { ...snapshot, samples };
}

function countersOf(snapshot: Snapshot): Snapshot {
  const isCounter = (sample: Sample) => definitionOf(sample.metric)?.type === 'counter';
  return { samples: snapshot.samples.filter(isCounter), histograms: snapshot.histograms };
}

// A worker of this very build reports: a name outside of the table can only be a mistake, and is left out.
function definitionOf(name: string): Definition | undefined {
  const table: Readonly<Record<string, Definition>> = workerMetrics;
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function addSnapshots(past: Snapshot | undefined, recent: Snapshot): Snapshot {
  if (past === undefined) return recent;
  return {
    samples: merge(past.samples, recent.samples, (a, b) => ({ ...a, value: a.value + b.value })),
    histograms: merge(past.histograms, recent.histograms, addHistograms),
  };
}

function addHistograms(a: HistogramSample, b: HistogramSample): HistogramSample {
  const counts = a.counts.map((count, index) => count + (b.counts[index] ?? 0));
  return { ...a, counts, sum: a.sum + b.sum };
}

function merge<T extends { metric: string; labels: Labels }>(
  past: readonly T[],
  recent: readonly T[],
  add: (a: T, b: T) => T,
): readonly T[] {
  const sums = new Map<string, T>();
  for (const one of [...past, ...recent]) {
    const key = JSON.stringify([one.metric, Object.entries(one.labels).sort()]);
    const sum = sums.get(key);
    sums.set(key, sum === undefined ? one : add(sum, one));
  }
  return [...sums.values()];
}

type SlotSnapshot = { readonly labels: Labels; readonly snapshot: Snapshot };

function workerValues(slots: readonly SlotSnapshot[]): readonly unknown[] {
  return Object.entries<Definition>(workerMetrics).map(([name, definition]) => {
    const values = slots.flatMap(({ labels, snapshot }) => {
      const own = (one: { metric: string }) => one.metric === name;
      const samples: Value[] = snapshot.samples
        .filter(own)
        .map((sample) => ({ labels: { ...labels, ...sample.labels }, value: sample.value }));
      const histograms = snapshot.histograms
        .filter(own)
        .flatMap((one) => histogramValues(name, definition, { ...labels, ...one.labels }, one));
      return [...samples, ...histograms];
    });
    return metricOf(name, definition, values);
  });
}

function histogramValues(
  name: string,
  { buckets = [] }: Definition,
  labels: Labels,
  { counts, sum }: Pick<HistogramSample, 'counts' | 'sum'>,
): readonly Value[] {
  let total = 0;
  const cumulative = [...buckets.map(String), '+Inf'].map((le, index) => {
    total += counts[index] ?? 0;
    return { labels: { ...labels, le }, value: total, metricName: `${name}_bucket` };
  });
  return [
    ...cumulative,
    { labels, value: sum, metricName: `${name}_sum` },
    { labels, value: total, metricName: `${name}_count` },
  ];
}

function supervisorValues(section: string, state: SupervisorState): readonly unknown[] {
  const bySlot = (measure: (slot: SlotState) => number) =>
    state.slots.map((one) => ({
      labels: { section, slot: String(one.slot) },
      value: measure(one),
    }));
  const { own } = state;
  const alone = (value: number) => [{ labels: { section }, value }];
  const values: Readonly<Record<keyof typeof supervisorMetrics, readonly Value[]>> = {
    dbhttpd_build_info: [{ labels: { section, version, node: process.versions.node }, value: 1 }],
    process_start_time_seconds: alone(state.startedAt),
    dbhttpd_requests_lost_total: bySlot((slot) => slot.requestsLost),
    dbhttpd_worker_up: bySlot(({ state }) => (state === 'serving' || state === 'silent' ? 1 : 0)),
    dbhttpd_worker_restarts_total: bySlot((slot) => slot.restarts),
    dbhttpd_worker_version_mismatch: bySlot((slot) => (slot.runsOtherCode ? 1 : 0)),
    dbhttpd_workers_silent: alone(state.silent),
    dbhttpd_supervisor_log_lines_lost_total: alone(state.logLinesLost),
    dbhttpd_certificate_expiry_timestamp_seconds: state.certificates.map((one) => ({
      labels: { section: one.section, key: one.key },
      value: one.expiresAtMs / 1000,
    })),
    dbhttpd_client_expiry_timestamp_seconds: state.expiringClients.map((one) => ({
      labels: { section, client: one.client },
      value: one.expiresAtMs / 1000,
    })),
    dbhttpd_file_faults: state.renewedKeys.map((key) => ({
      labels: { section, key },
      value: state.fileFaults.filter((fault) => fault.key === key).length,
    })),
    dbhttpd_primary_memories_unsaved: alone(state.primariesUnsaved),
    dbhttpd_supervisor_cpu_seconds_total: alone(own.cpuSeconds),
    dbhttpd_supervisor_resident_memory_bytes: alone(own.residentBytes),
    dbhttpd_supervisor_heap_used_bytes: alone(own.heapUsedBytes),
    dbhttpd_supervisor_event_loop_lag_seconds: histogramValues(
      'dbhttpd_supervisor_event_loop_lag_seconds',
      supervisorMetrics.dbhttpd_supervisor_event_loop_lag_seconds,
      { section },
      own.lag,
    ),
  };
  return Object.entries<Definition>(supervisorMetrics).map(([name, definition]) =>
    metricOf(name, definition, values[name as keyof typeof supervisorMetrics]),
  );
}

function metricOf(name: string, { type, help }: Definition, values: readonly Value[]) {
  return { name, help, type, values, aggregator: 'sum' };
}

/** Measures from now on. Returns what is known at the moment of each call; without a descriptor left, the memory as it was. */
export function measureOwnFigures(): () => OwnFigures {
  const lag = measureEventLoopLag();
  let memory = { rss: 0, heapUsed: 0 };
  return () => {
    try {
      memory = process.memoryUsage();
    } catch {
      // The system is asked by opening a file: EMFILE or ENFILE.
    }
    const { user, system } = process.cpuUsage();
    return {
      cpuSeconds: (user + system) / 1e6,
      residentBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      lag: lag.histogram.read(),
    };
  };
}

// The state of an instance as one object, which /v1/stats and the console show: sums over all workers, their history, recent errors.
import type { Sections } from '../../shared/config/config.ts';
import {
  failures,
  mysqlFailures,
  otherMysqlFailure,
  outcomes,
} from '../../shared/failure-codes.ts';
import {
  type Sample,
  type Snapshot,
  type TimedPhase,
  type WorkerMetric,
  workerMetrics,
} from '../../shared/observe/metrics.ts';
import type { NamedCounts } from '../../shared/observe/statement-sums.ts';
import {
  type BackendStats,
  type FileFault,
  type HistoryStats,
  type ListedError,
  maxFileFaults,
  maxRecentErrors,
  type RecentError,
  type ServerVerdict,
  type Stats,
  type WorkerStats,
} from '../../shared/observe/stats.ts';
import { version } from '../../shared/process/build.ts';

/** The latest snapshot of each living worker by its slot, and the counters of workers that have ended. */
export type Reported = {
  readonly past: readonly Snapshot[];
  readonly present: ReadonlyMap<number, Snapshot>;
};

/** A slot and its worker at one moment. */
export type SlotState = {
  readonly slot: number;
  readonly pid: number | null;
  readonly state: WorkerStats['state'];
  readonly restarts: number;
  readonly runsOtherCode: boolean;
  /** How many requests were in flight when a worker of the slot died. */
  readonly requestsLost: number;
};

/** Counters summed over all workers, the ended ones included. */
export type Counts = {
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
};

/** The sums at one moment. */
export type Figures = Counts & {
  /** How many requests fell into each bucket of `durationBounds`, not cumulative; the last number is of longer ones. */
  readonly durations: readonly number[];
  /** The same for two phases of that time. */
  readonly phases: Readonly<Record<ShownPhase, readonly number[]>>;
  readonly dataRefusals: number;
  readonly busy: number;
  readonly max: number;
  readonly waiting: number;
};

/** Waiting is time in the pool's queue, the time to the first row is the database's. */
type ShownPhase = Extract<TimedPhase, 'waiting' | 'first_row'>;

const duration: WorkerMetric = 'dbhttpd_request_duration_seconds';
const phaseDuration: WorkerMetric = 'dbhttpd_phase_duration_seconds';

/** The upper bounds of `Figures.durations`, in seconds. */
export const durationBounds = workerMetrics[duration].buckets;

/** The sum of a worker's samples of a metric that have these labels among theirs. */
function sumOf(
  { samples }: Snapshot,
  metric: WorkerMetric,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels);
  const isWanted = (sample: Sample) =>
    sample.metric === metric && wanted.every(([name, value]) => sample.labels[name] === value);
  return samples.reduce((sum, sample) => (isWanted(sample) ? sum + sample.value : sum), 0);
}

function sumOfAll(snapshots: readonly Snapshot[], metric: WorkerMetric, labels = {}): number {
  return snapshots.reduce((sum, snapshot) => sum + sumOf(snapshot, metric, labels), 0);
}

/** Sums up the counters that people look at. */
export function readCounts({ past, present }: Reported): Counts {
  const all = [...past, ...present.values()];
  return {
    requests: sumOfAll(all, 'dbhttpd_requests_total'),
    outcomes: sumsByLabel(all, 'dbhttpd_outcomes_total', 'outcome'),
    failures: sumsByLabel(all, 'dbhttpd_failures_total', 'code'),
  };
}

/** Sums up the calls of each named statement. */
export function countNamed({ past, present }: Reported): readonly NamedCounts[] {
  const sums = new Map<string, { calls: number; failed: number; total_ms: number }>();
  for (const { samples } of [...past, ...present.values()]) {
    for (const { metric, labels, value } of samples) {
      const { name } = labels;
      if (name === undefined) continue;
      const sum = sums.get(name) ?? { calls: 0, failed: 0, total_ms: 0 };
      if (metric === 'dbhttpd_named_seconds_total') sum.total_ms += 1000 * value;
      else if (metric === 'dbhttpd_named_calls_total') {
        sum.calls += value;
        if (labels.result === 'failed') sum.failed += value;
      } else continue;
      sums.set(name, sum);
    }
  }
  return [...sums].map(([name, sum]) => ({ name, ...sum }));
}

/** Sums up all that the history shows. */
export function readFigures(reported: Reported): Figures {
  const living = [...reported.present.values()];
  const all = [...reported.past, ...living];
  return {
    ...readCounts(reported),
    durations: addDurations(all, duration),
    phases: {
      waiting: addDurations(all, phaseDuration, 'waiting'),
      first_row: addDurations(all, phaseDuration, 'first_row'),
    },
    dataRefusals: sumOfAll(all, 'dbhttpd_data_refusals_total'),
    busy: sumOfAll(living, 'dbhttpd_pool_connections', { state: 'busy' }),
    max: sumOfAll(living, 'dbhttpd_pool_connections_max'),
    waiting: sumOfAll(living, 'dbhttpd_queue_length'),
  };
}

function sumsByLabel(
  snapshots: readonly Snapshot[],
  metric: WorkerMetric,
  label: string,
): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const sample of snapshots.flatMap(({ samples }) => samples)) {
    const name = sample.labels[label];
    if (sample.metric === metric && name !== undefined)
      sums[name] = (sums[name] ?? 0) + sample.value;
  }
  return sums;
}

function addDurations(
  snapshots: readonly Snapshot[],
  metric: WorkerMetric,
  phase?: ShownPhase,
): readonly number[] {
  const counts = new Array<number>(durationBounds.length + 1).fill(0);
  for (const histogram of snapshots.flatMap(({ histograms }) => histograms)) {
    if (histogram.metric !== metric || histogram.labels.phase !== phase) continue;
    for (const [index, count] of histogram.counts.entries())
      counts[index] = (counts[index] ?? 0) + count;
  }
  return counts;
}

/** The sources of an instance's description. */
export type StatsSources = {
  /** The first one names the instance. */
  readonly sections: Sections;
  readonly slots: readonly SlotState[];
  readonly reported: Reported;
  /** The living workers' figures. */
  readonly verdicts: readonly ServerVerdict[];
  readonly history: Stats['history'];
  readonly clients: Stats['clients'];
  readonly errors: Stats['errors'];
  readonly fileFaults: readonly FileFault[];
};

const roles = ['primary', 'replica', 'unusable'] as const;

/** Describes the instance as of now. */
export function describeInstance({
  sections,
  slots,
  reported,
  verdicts,
  history,
  clients,
  errors,
  fileFaults,
}: StatsSources): Stats {
  const workers = slots.map((slot) => describeWorker(slot, reported.present.get(slot.slot)));
  return {
    version,
    node: process.version,
    section: sections[0].section,
    now: new Date().toISOString(),
    started_at: new Date(performance.timeOrigin).toISOString(),
    ready: workers.some(({ ready }) => ready),
    workers,
    backends: describeBackends([...reported.present.values()], verdicts, sections),
    totals: readCounts(reported),
    history,
    clients,
    errors,
    file_faults: fileFaults.slice(0, maxFileFaults),
  };
}

function describeWorker(slot: SlotState, snapshot: Snapshot | undefined): WorkerStats {
  const figure = (metric: WorkerMetric) => (snapshot === undefined ? 0 : sumOf(snapshot, metric));
  const isReady = slot.state === 'serving' && figure('dbhttpd_ready') > 0;
  const reason = snapshot?.samples.find(
    ({ metric, value }) => metric === 'dbhttpd_unready' && value > 0,
  );
  return {
    slot: slot.slot,
    pid: slot.pid,
    state: slot.state,
    restarts: slot.restarts,
    runs_other_code: slot.runsOtherCode,
    ready: isReady,
    unready: isReady ? null : (reason?.labels.reason ?? null),
    requests_in_flight: figure('dbhttpd_requests_in_flight'),
    client_connections: figure('dbhttpd_client_connections'),
    cpu_seconds: figure('process_cpu_seconds_total'),
    memory_bytes: figure('process_resident_memory_bytes'),
    event_loop_lag_ms:
      snapshot === undefined ? null : tenths(1000 * figure('dbhttpd_event_loop_lag_max_seconds')),
  };
}

function tenths(value: number): number {
  return Math.round(10 * value) / 10;
}

function describeBackends(
  snapshots: readonly Snapshot[],
  verdicts: readonly ServerVerdict[],
  sections: Sections,
): readonly BackendStats[] {
  const names = new Map<string, { readonly section: string; readonly backend: string }>();
  for (const { metric, labels } of snapshots.flatMap(({ samples }) => samples)) {
    const { section = '', backend = '' } = labels;
    if (metric === 'dbhttpd_pool_connections_max')
      names.set(`${section} ${backend}`, { section, backend });
  }
  return [...names.values()].map((name) => {
    const config = sections.find(({ section }) => section === name.section);
    const isReadFrom = config?.reads === 'replicas';
    const described = describeBackend(snapshots, name);
    const verdict = verdicts.find(
      ({ section, backend, role }) =>
        section === name.section && backend === name.backend && role === described.role,
    );
    return {
      ...described,
      reason: verdict?.reason ?? null,
      max_lag_seconds: isReadFrom ? config.maxLagMs / 1000 : null,
    };
  });
}

function describeBackend(
  snapshots: readonly Snapshot[],
  name: { readonly section: string; readonly backend: string },
): Omit<BackendStats, 'reason' | 'max_lag_seconds'> {
  const sum = (metric: WorkerMetric, labels = {}) =>
    sumOfAll(snapshots, metric, { ...name, ...labels });
  const connections = (state: string) => sum('dbhttpd_pool_connections', { state });
  const votes = roles.map((role) => ({ role, workers: sum('dbhttpd_backend_role', { role }) }));
  const [winner] = votes.sort((left, right) => right.workers - left.workers);
  const max = (wanted: WorkerMetric) => {
    const values = snapshots
      .flatMap(({ samples }) => samples)
      .filter(
        ({ metric, labels }) =>
          metric === wanted && labels.section === name.section && labels.backend === name.backend,
      )
      .map(({ value }) => value);
    return values.length === 0 ? null : Math.max(...values);
  };
  return {
    ...name,
    role: winner !== undefined && winner.workers > 0 ? winner.role : null,
    lag_seconds: max('dbhttpd_backend_lag_seconds'),
    connections: {
      busy: connections('busy') + connections('resetting'),
      idle: connections('idle'),
      connecting: connections('connecting'),
      max: sum('dbhttpd_pool_connections_max'),
    },
    transactions_held: sum('dbhttpd_transactions_held'),
    waiting: sum('dbhttpd_queue_length'),
    connect_errno: max('dbhttpd_connect_errno') || null,
  };
}

/** The time between two points of the history. */
export const historyIntervalMs = 2000;
const maxPoints = 300;

type Point = {
  readonly at: number;
  readonly rates: Readonly<Record<string, number>>;
  readonly dataRefusals: number;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly waits: number | null;
  readonly firstRow: number | null;
  readonly busy: number;
  readonly max: number;
  readonly waiting: number;
};

/** The last ten minutes of an instance. */
export class History {
  readonly #points: Point[] = [];
  #before: { readonly atMs: number; readonly figures: Figures } | null = null;

  /** Adds a point, which compares the figures with those of the call before. */
  note(figures: Figures, atMs: number): void {
    const before = this.#before;
    this.#before = { atMs, figures };
    if (before === null || atMs <= before.atMs) return;
    const seconds = (atMs - before.atMs) / 1000;
    const quantile = (share: number, of: (figures: Figures) => readonly number[]) =>
      quantileMs(subtract(of(figures), of(before.figures)), share);
    const whole = ({ durations }: Figures) => durations;
    this.#points.push({
      at: Math.round(atMs / 1000),
      rates: ratesOf(before.figures.outcomes, figures.outcomes, seconds),
      dataRefusals: rateOf(before.figures.dataRefusals, figures.dataRefusals, seconds),
      p50: quantile(0.5, whole),
      p95: quantile(0.95, whole),
      p99: quantile(0.99, whole),
      waits: quantile(0.95, ({ phases }) => phases.waiting),
      firstRow: quantile(0.95, ({ phases }) => phases.first_row),
      busy: figures.busy,
      max: figures.max,
      waiting: figures.waiting,
    });
    if (this.#points.length > maxPoints) this.#points.shift();
  }

  /** All points, the oldest first. */
  points(): HistoryStats {
    const points = this.#points;
    const line = <Value>(of: (point: Point) => Value) => points.map(of);
    return {
      interval_seconds: historyIntervalMs / 1000,
      at: line(({ at }) => at),
      outcomes: Object.fromEntries(
        outcomes.map((outcome) => [outcome, line(({ rates }) => rates[outcome] ?? 0)]),
      ),
      data_refusals: line(({ dataRefusals }) => dataRefusals),
      latency_ms: {
        p50: line(({ p50 }) => p50),
        p95: line(({ p95 }) => p95),
        p99: line(({ p99 }) => p99),
      },
      phases_p95_ms: {
        waiting: line(({ waits }) => waits),
        first_row: line(({ firstRow }) => firstRow),
      },
      connections: { busy: line(({ busy }) => busy), max: line(({ max }) => max) },
      waiting: line(({ waiting }) => waiting),
    };
  }
}

function subtract(counts: readonly number[], before: readonly number[]): readonly number[] {
  return counts.map((count, at) => count - (before[at] ?? 0));
}

function ratesOf(
  before: Readonly<Record<string, number>>,
  now: Readonly<Record<string, number>>,
  seconds: number,
): Readonly<Record<string, number>> {
  const rate = (name: string) => rateOf(before[name] ?? 0, now[name] ?? 0, seconds);
  return Object.fromEntries(Object.keys(now).map((name) => [name, rate(name)]));
}

function rateOf(before: number, now: number, seconds: number): number {
  return rounded(Math.max(0, now - before) / seconds);
}

/**
 * The duration that a share of the requests stays below, in ms, if requests are spread evenly within each bucket. Null: there are none.
 * @param counts by bucket, not cumulative: one more than there are bounds
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + Math.max(0, count), 0);
  if (total === 0) return null;
  let left = share * total;
  for (const [index, count] of counts.entries()) {
    const from = durationBounds[index - 1] ?? 0;
    const to = durationBounds[index] ?? from;
    if (count > 0 && left <= count) return rounded(1000 * (from + ((to - from) * left) / count));
    left -= Math.max(0, count);
  }
  return rounded(1000 * (durationBounds.at(-1) ?? 0));
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** The latest failed requests of an instance. */
export class RecentErrors {
  #all: readonly ListedError[] = [];

  /** Adds the errors that a worker reports, the oldest first. Within a millisecond, the one reported last is the latest. */
  add(worker: number, errors: readonly RecentError[]): void {
    if (errors.length === 0) return;
    const added = errors
      .map((error) => ({ ...error, worker, meaning: meaningOf(error) }))
      .reverse();
    this.#all = [...added, ...this.#all]
      .sort((left, right) => (left.at < right.at ? 1 : left.at > right.at ? -1 : 0))
      .slice(0, maxRecentErrors);
  }

  /** The latest first. */
  get latest(): readonly ListedError[] {
    return this.#all;
  }
}

/** The meaning of its code, or of MySQL's number. */
function meaningOf({ code, errno }: RecentError): string {
  if (code !== null) return failures[code].meaning;
  const found = mysqlFailures.find((failure) => failure.errno === errno);
  return (found ?? otherMysqlFailure).meaning;
}

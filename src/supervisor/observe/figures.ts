// The few sums over all workers that people look at, read from what the workers report.
// Must not know where reports come from, nor who looks.
import {
  type RequestPhase,
  type Sample,
  type Snapshot,
  type WorkerMetric,
  workerMetrics,
} from '../../shared/observe/metrics.ts';

/** What workers have reported: each living worker's latest, and what the dead have left. */
export type Reported = {
  readonly past: readonly Snapshot[];
  readonly present: ReadonlyMap<number, Snapshot>;
};

/** The sums at one moment. */
export type Figures = {
  readonly requests: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  /** Requests by how long they took: one more than there are buckets, not cumulative. */
  readonly durations: readonly number[];
  /** The same of two parts of that time. */
  readonly phases: Readonly<Record<ToldPhase, readonly number[]>>;
  readonly busy: number;
  readonly max: number;
  readonly waiting: number;
};

/** Waiting is the pool's, the time to the first row the database's. */
type ToldPhase = Extract<RequestPhase, 'waiting' | 'first_row'>;

const duration: WorkerMetric = 'dbhttpd_request_duration_seconds';
const phaseDuration: WorkerMetric = 'dbhttpd_phase_duration_seconds';

/** The upper bounds of `Figures.durations`, in seconds; the last has none. */
export const durationBounds = workerMetrics[duration].buckets;

/** The sum of a worker's samples of a metric. @param labels those that must be so; others may be what they are */
export function sumOf(
  { samples }: Snapshot,
  metric: WorkerMetric,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels);
  const isMeant = (sample: Sample) =>
    sample.metric === metric && wanted.every(([name, value]) => sample.labels[name] === value);
  return samples.reduce((sum, sample) => (isMeant(sample) ? sum + sample.value : sum), 0);
}

/** Reads them. */
export function readFigures({ past, present }: Reported): Figures {
  const living = [...present.values()];
  const all = [...past, ...living];
  const now = (metric: WorkerMetric, labels = {}) =>
    living.reduce((sum, snapshot) => sum + sumOf(snapshot, metric, labels), 0);
  return {
    requests: all.reduce((sum, snapshot) => sum + sumOf(snapshot, 'dbhttpd_requests_total'), 0),
    outcomes: sumsByLabel(all, 'dbhttpd_outcomes_total', 'outcome'),
    failures: sumsByLabel(all, 'dbhttpd_failures_total', 'code'),
    durations: addDurations(all, duration),
    phases: {
      waiting: addDurations(all, phaseDuration, 'waiting'),
      first_row: addDurations(all, phaseDuration, 'first_row'),
    },
    busy: now('dbhttpd_pool_connections', { state: 'busy' }),
    max: now('dbhttpd_pool_connections_max'),
    waiting: now('dbhttpd_queue_length'),
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
  phase?: ToldPhase,
): readonly number[] {
  const counts = new Array<number>(durationBounds.length + 1).fill(0);
  for (const histogram of snapshots.flatMap(({ histograms }) => histograms)) {
    if (histogram.metric !== metric || histogram.labels.phase !== phase) continue;
    for (const [index, count] of histogram.counts.entries())
      counts[index] = (counts[index] ?? 0) + count;
  }
  return counts;
}

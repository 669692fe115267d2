// An instance in one object, for people and the console.
// Must not know how workers are asked.

import type { Sections } from '../../shared/config/config.ts';
import type { Snapshot, WorkerMetric } from '../../shared/observe/metrics.ts';
import type {
  BackendStats,
  ServerVerdict,
  Stats,
  WorkerStats,
} from '../../shared/observe/stats.ts';
import { version } from '../../shared/process/version.ts';
import type { Slot } from '../slot.ts';
import { type Reported, readFigures, sumOf } from './figures.ts';

/** Where it is read from. */
export type StatsSources = {
  /** The first one names the instance. */
  readonly sections: Sections;
  readonly slots: readonly Slot[];
  readonly reported: Reported;
  /** The living workers'. */
  readonly verdicts: readonly ServerVerdict[];
  readonly history: Stats['history'];
  readonly errors: Stats['errors'];
};

const roles = ['primary', 'replica', 'unusable'] as const;

/** Describes it as of now. */
export function describeInstance({
  sections,
  slots,
  reported,
  verdicts,
  history,
  errors,
}: StatsSources): Stats {
  const workers = slots.map((slot) => describeWorker(slot, reported.present.get(slot.number)));
  const { requests, outcomes, failures } = readFigures(reported);
  return {
    version,
    node: process.version,
    section: sections[0].section,
    now: new Date().toISOString(),
    started_at: new Date(performance.timeOrigin).toISOString(),
    ready: workers.some(({ ready }) => ready),
    workers,
    backends: describeBackends([...reported.present.values()], verdicts, sections),
    totals: { requests, outcomes, failures },
    history,
    errors,
  };
}

function describeWorker(slot: Slot, snapshot: Snapshot | undefined): WorkerStats {
  const figure = (metric: WorkerMetric) => (snapshot === undefined ? 0 : sumOf(snapshot, metric));
  const isServing = slot.isListening() && !slot.isSilent();
  const isReady = isServing && figure('dbhttpd_ready') > 0;
  const reason = snapshot?.samples.find(
    ({ metric, value }) => metric === 'dbhttpd_unready' && value > 0,
  );
  return {
    slot: slot.number,
    pid: slot.pid(),
    state: stateOf(slot),
    restarts: slot.restarts(),
    runs_other_code: slot.runsOtherCode(),
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

function stateOf(slot: Slot): WorkerStats['state'] {
  if (slot.isEmpty()) return 'down';
  if (!slot.isListening()) return 'starting';
  return slot.isSilent() ? 'silent' : 'serving';
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
    snapshots.reduce((all, snapshot) => all + sumOf(snapshot, metric, { ...name, ...labels }), 0);
  const connections = (state: string) => sum('dbhttpd_pool_connections', { state });
  const votes = roles.map((role) => ({ role, workers: sum('dbhttpd_backend_role', { role }) }));
  const [winner] = votes.sort((left, right) => right.workers - left.workers);
  const lags = snapshots
    .flatMap(({ samples }) => samples)
    .filter(
      ({ metric, labels }) =>
        metric === 'dbhttpd_backend_lag_seconds' &&
        labels.section === name.section &&
        labels.backend === name.backend,
    )
    .map(({ value }) => value);
  return {
    ...name,
    role: winner !== undefined && winner.workers > 0 ? winner.role : null,
    lag_seconds: lags.length === 0 ? null : Math.max(...lags),
    connections: {
      busy: connections('busy') + connections('resetting'),
      idle: connections('idle'),
      connecting: connections('connecting'),
      max: sum('dbhttpd_pool_connections_max'),
    },
    transactions_held: sum('dbhttpd_transactions_held'),
    waiting: sum('dbhttpd_queue_length'),
  };
}

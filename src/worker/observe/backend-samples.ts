// One server's figures as samples.
// Must not know who counts them.
import type { Sample, WorkerMetric } from '../../shared/observe/metrics.ts';
import { type NoPrimary, noPrimaryReasons } from '../../shared/servers/judge.ts';
import type { PipelineObservations } from '../execution/pipeline/pipeline.ts';
import type { ServerObservations } from '../servers/server.ts';
import type { Standing } from '../servers/topology.ts';
import { sample } from './samples.ts';

const noPipeline: PipelineObservations = { statements: 0, reruns: 0, connections: 0 };
const roles = ['primary', 'replica', 'unusable'] as const;

/** What a worker makes of one of several servers. */
export function standingSamples(
  section: string,
  backend: string,
  { role, lagMs, changes }: Standing,
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

/** Why a worker writes nowhere: a series for each reason. @param none null: it writes */
export function noPrimarySamples(section: string, none: NoPrimary | null): readonly Sample[] {
  return noPrimaryReasons.map((reason) =>
    sample('dbhttpd_no_primary', none?.reason === reason ? 1 : 0, { section, reason }),
  );
}

/** What a worker has to say of one of a section's servers. */
export function backendSamples(
  section: string,
  { address: backend, pool, reserved, control }: ServerObservations,
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
    one('dbhttpd_control_connected', control.connected ? 1 : 0),
    one('dbhttpd_statements_running_on', control.runningOn),
    ...results('dbhttpd_kills_total', control.killsOk, control.killsFailed),
  ];
}

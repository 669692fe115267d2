// Invented answers of an instance about itself. The caller chooses every text in them.
import type { ListedNamed, StatementList } from '../../src/shared/observe/statement-sums.ts';
import type { ListedError, ListedRequest, Stats } from '../../src/shared/observe/stats.ts';

/** Answers of the three endpoints that the console uses. */
export type ConsoleAnswers = {
  readonly stats: Stats;
  readonly requests: readonly ListedRequest[];
  readonly statements: StatementList;
};

const points = 300;

/** @param text used wherever a stranger's text may appear */
export function makeUpAnswers(text = 'select * from t where id = ?'): ConsoleAnswers {
  const now = Date.now();
  const at = Array.from(
    { length: points },
    (_, index) => Math.floor(now / 1000) - 2 * (points - index),
  );
  const series = (value: number) => at.map((_, index) => (index === 7 ? null : value));
  const tens = Array.from({ length: 60 }, (_, at) => Math.floor(now / 1000) - 10 * (60 - at));
  const moment = new Date(now).toISOString();
  return {
    stats: {
      version: text,
      node: 'v20.20.2',
      section: text,
      now: moment,
      started_at: new Date(now - 3_600_000).toISOString(),
      ready: true,
      workers: [0, 1].map((slot) => ({
        slot,
        pid: 4000 + slot,
        state: slot === 0 ? 'serving' : 'silent',
        restarts: slot,
        runs_other_code: slot === 1,
        ready: slot === 0,
        unready: slot === 0 ? null : text,
        requests_in_flight: 3,
        client_connections: 10,
        cpu_seconds: 1.5,
        memory_bytes: 98_000_000,
        event_loop_lag_ms: slot === 0 ? 0.4 : null,
      })),
      backends: [null, 'primary', 'replica'].map((role, index) => ({
        section: text,
        backend: `${index} ${text}`,
        role,
        reason: role === null ? null : text,
        lag_seconds: role === 'replica' ? 12.5 : null,
        max_lag_seconds: 10,
        connections: { busy: 10, idle: 0, connecting: 0, max: 10 },
        transactions_held: 0,
        waiting: 4,
        connect_errno: null,
      })),
      totals: { requests: 1234, outcomes: { ok: 1200, error: 34 }, failures: {} },
      history: {
        interval_seconds: 2,
        at,
        outcomes: { ok: series(120.5), error: series(2), unknown: series(0) },
        data_refusals: series(1),
        latency_ms: { p50: series(1), p95: series(4), p99: series(20) },
        phases_p95_ms: { waiting: series(2), first_row: series(1) },
        connections: { busy: series(10), max: series(10) },
        waiting: series(4),
      },
      clients: {
        history: { interval_seconds: 10, at: tens },
        omitted: 0,
        clients: [0.9, 0.1].map((share, index) => ({
          client: `${index} ${text}`,
          share,
          in_flight: 3,
          waiting: 4 - index,
          refused_recently: index,
          requests: 1000,
          refused: index,
          refused_by: { [text]: index },
          held_seconds: 100 * share,
          reply_bytes: 1_000_000,
          history: { connections: tens.map((_, at) => share * at), refused: tens.map(() => 0) },
        })),
      },
      errors: [null, 1062].map((errno, index) => ({
        at: new Date(now - 60_000 * index).toISOString(),
        worker: 0,
        request_id: `${index} ${text}`,
        trace_id: null,
        client: text,
        user: null,
        section: text,
        named: null,
        tool: index === 0 ? text : null,
        status: 504,
        code: text as ListedError['code'],
        errno,
        error_name: errno === null ? null : text,
        by_data: errno !== null,
        outcome: text as ListedError['outcome'],
        shape: text,
        meaning: text,
      })),
      file_faults: [],
    },
    requests: [12_000, 300].map((age_ms, index) => ({
      id: `${index}-1`,
      request_id: `${index} ${text}`,
      trace_id: index === 0 ? text : null,
      age_ms,
      phase: text as ListedRequest['phase'],
      client: text,
      user: index === 0 ? text : null,
      address: index === 0 ? text : null,
      worker: index,
      backend: text,
      section: text,
      named: index === 0 ? text : null,
      tool: index === 0 ? text : null,
      shape: text,
    })),
    statements: {
      history: { interval_seconds: 10, at: tens },
      statements: [0.7, 0.3].map((share, index) => ({
        digest: `${index} ${text}`,
        section: text,
        client: text,
        count: 100,
        errors: index,
        errors_by: { [text]: index },
        rows: 1000,
        total_ms: 70_000 * share,
        share,
        p50_ms: 1,
        p95_ms: 4,
        p99_ms: 20,
        last_seen: moment,
        example_id: text,
        history: { count: tens.map(() => 10), total_ms: tens.map((_, at) => 50 + at) },
      })),
      named: ['one', 'exec'].map((kind, index) => ({
        name: `${index} ${text}`,
        section: text,
        kind: kind as ListedNamed['kind'],
        for: index === 0 ? ['*'] : [text],
        calls: 10 * index,
        failed: index,
        total_ms: 100 * index,
      })),
    },
  };
}

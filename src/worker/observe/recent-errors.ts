// The latest requests that failed since the last report to the supervisor. Statements lose their literals before they are reported.
import { isDataRefusal } from '../../shared/failure-codes.ts';
import { errorName } from '../../shared/mysql/error-names.ts';
import { maxRecentErrors, type RecentError } from '../../shared/observe/stats.ts';
import { digest } from '../../shared/sql/digest.ts';
import type { Endpoint, ExchangeSummary, Observation, RequestRecord } from './observation.ts';

type Noted = Omit<RecentError, 'at' | 'shape'> & {
  readonly at: number;
  readonly sql: string | null;
};

/** The endpoints that run SQL. */
const sqlEndpoints: ReadonlySet<Endpoint> = new Set([
  'db',
  'v1_query',
  'v1_batch',
  'v1_named',
  'v1_tables',
  'driver_execute',
  'mcp',
]);

/** The recent errors of one worker, in a ring: only errors that are reported are formatted. */
export class RecentErrors {
  readonly #noted: Noted[] = [];
  #count = 0;

  observe(observation: Observation): void {
    if (observation.kind === 'statements finished') {
      if (observation.summary.outcome !== 'ok') this.#note(ofStatements(observation.summary));
    } else if (observation.kind === 'request finished') {
      const { record } = observation;
      if (
        record.statements === null &&
        record.code !== null &&
        sqlEndpoints.has(record.head.endpoint)
      ) {
        this.#note(ofRefused(record));
      }
    }
  }

  /** Returns the latest errors, the oldest first, and forgets them. */
  take(): readonly RecentError[] {
    const from = this.#count > maxRecentErrors ? this.#count % maxRecentErrors : 0;
    const inOrder = [...this.#noted.slice(from), ...this.#noted.slice(0, from)];
    this.#noted.length = 0;
    this.#count = 0;
    return inOrder.map(({ at, sql, ...rest }) => ({
      at: new Date(at).toISOString(),
      ...rest,
      shape: sql === null ? null : digest(sql),
    }));
  }

  #note(noted: Noted): void {
    this.#noted[this.#count % maxRecentErrors] = noted;
    this.#count += 1;
  }
}

function ofStatements(summary: ExchangeSummary): Noted {
  const { requestId, traceId, client, user, section, named, tool } = summary;
  const { status, code, errno, outcome, sql } = summary;
  return {
    at: Date.now(),
    request_id: requestId,
    trace_id: traceId,
    client,
    user,
    section,
    named,
    tool,
    status,
    code,
    errno,
    error_name: errno === null ? null : errorName(errno),
    by_data: isDataRefusal(code, errno),
    outcome,
    sql,
  };
}

function ofRefused(record: RequestRecord): Noted {
  const { requestId, traceId, client, user, named, tool, status, code } = record;
  const at = Date.now();
  const outcome = 'not_executed';
  return {
    at,
    request_id: requestId,
    trace_id: traceId,
    client,
    user,
    section: null,
    named,
    tool,
    status,
    code,
    errno: null,
    error_name: null,
    by_data: false,
    outcome,
    sql: null,
  };
}

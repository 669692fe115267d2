// The requests that went wrong since the last report: the latest, for people.
// Must not know who asks. Statements lose their literals before they are told.
import { maxRecentErrors, type RecentError } from '../../shared/observe/stats.ts';
import { digest } from '../../shared/sql/digest.ts';
import type { Endpoint, ExchangeSummary, Observation, RequestRecord } from './observation.ts';

type Noted = Omit<RecentError, 'at' | 'shape'> & {
  readonly at: number;
  readonly sql: string | null;
};

/** Whose requests run SQL. */
const sqlEndpoints: ReadonlySet<Endpoint> = new Set([
  'db',
  'v1_query',
  'v1_batch',
  'driver_execute',
]);

/** Those of one worker. A flood of errors costs no more than one field each: what is overwritten is never looked at. */
export class RecentErrors {
  readonly #noted: Noted[] = [];
  #count = 0;

  observe(observation: Observation): void {
    if (observation.kind === 'statements finished') {
      if (observation.summary.outcome !== 'ok') this.#note(ofStatements(observation.summary));
    } else if (observation.kind === 'request finished') {
      const { record } = observation;
      if (record.told === null && record.code !== null && sqlEndpoints.has(record.head.endpoint)) {
        this.#note(ofRefused(record));
      }
    }
  }

  /** The latest of them, the oldest first; from now on they are nobody's. */
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
  const { requestId, section, status, code, errno, outcome, sql } = summary;
  return { at: Date.now(), request_id: requestId, section, status, code, errno, outcome, sql };
}

function ofRefused({ requestId, status, code }: RequestRecord): Noted {
  const outcome = 'not_executed';
  const section = null;
  return {
    at: Date.now(),
    request_id: requestId,
    section,
    status,
    code,
    errno: null,
    outcome,
    sql: null,
  };
}

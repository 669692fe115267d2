// The log's lines about requests: writes with an unknown outcome, replies that were cut, slow statements, exceptions. Statements appear
// without literals.
import { defaultClient } from '../../shared/clients/client.ts';
import { type Log, type LogFields, whereThrown } from '../../shared/process/log.ts';
import { digest } from '../../shared/sql/digest.ts';
import type { AnyFailure } from '../failure/failure.ts';
import {
  type ExchangeSummary,
  isSlow,
  type Observe,
  type Refused,
  type RequestRecord,
} from './observation.ts';
import { traceField } from './trace-context.ts';

/** The trace and the caller of a request, as far as they are known. */
type RequestContext = {
  readonly traceId: string | null;
  readonly client: string | null;
  readonly user: string | null;
};

/** The log fields of a request's trace and caller. The client `default` has none: most instances have no other. */
export function contextFields({ traceId, client, user }: RequestContext): LogFields {
  return {
    ...traceField(traceId),
    ...(client !== null && client !== defaultClient.name && { client }),
    ...(user !== null && { user }),
  };
}

/** Creates the observer that writes them. @param slowMs statements that run for at least this long are slow; 0: none is */
export function createRequestLog(log: Log, slowMs: number): Observe {
  return (observation) => {
    if (observation.kind === 'statements finished') {
      logStatements(log, observation.summary);
      if (isSlow(observation.summary, slowMs)) logSlow(log, observation.summary);
    } else if (observation.kind === 'request finished') {
      if (log.debug !== null) logFailure(log, observation.record);
    } else if (observation.kind === 'malformed request') {
      if (log.debug !== null) logRefused(log, observation.refused);
    } else if (observation.kind === 'failure hidden') {
      logHidden(log, observation.failure, observation.record);
    } else if (observation.kind === 'exception') {
      const { cause, record } = observation;
      log.error('an exception ended a request', {
        request: record.requestId,
        ...contextFields(record),
        thrown: whereThrown(cause),
      });
    }
  };
}

/** The one place where MySQL's text is logged: its client may not see it. */
function logHidden(log: Log, failure: AnyFailure, record: RequestRecord): void {
  const { requestId, named } = record;
  const { message } = failure;
  const error = failure.code === null ? { errno: failure.error.errno } : { code: failure.code };
  log.info('a client got a failure without its text', {
    request: requestId,
    ...contextFields(record),
    ...(named === null ? {} : { named }),
    ...error,
    text: message,
  });
}

/** Errors of MySQL have no code, and are not logged. */
function logFailure(log: Log, record: RequestRecord): void {
  const { requestId, head, status, code } = record;
  if (code === null) return;
  const { endpoint } = head;
  log.debug?.('a request failed', {
    request: requestId,
    ...contextFields(record),
    endpoint,
    status,
    code,
  });
}

function logRefused(log: Log, { address, status, code, reason, requestId }: Refused): void {
  log.debug?.('a malformed request was rejected', {
    request: requestId,
    address: address === '' ? '-' : address,
    status,
    code,
    reason,
  });
}

function logStatements(log: Log, summary: ExchangeSummary): void {
  const { outcome, code, clientGone, isRead, rows, bytes } = summary;
  if (outcome === 'unknown' && !isRead) {
    const statement = summary.sql === null ? '-' : digest(summary.sql);
    log.warn('the outcome of a write is unknown', {
      outcome,
      ...requestOf(summary),
      ...whyOf(code),
      statement,
    });
  } else if (clientGone && !isRead && outcome !== 'not_executed') {
    // A write that was not sent when its client left was withdrawn.
    log.warn('a write went on after its client had gone', { outcome, ...requestOf(summary) });
  }
  if (summary.wasCut) {
    log.warn('a reply was cut short', { ...whyOf(code), ...requestOf(summary), rows, bytes });
  }
}

function requestOf(summary: ExchangeSummary): LogFields {
  return { request: summary.requestId, ...contextFields(summary) };
}

const whyOf = (code: ExchangeSummary['code']) => ({ code: code ?? '-' });

function logSlow(log: Log, summary: ExchangeSummary): void {
  const { requestId, outcome, sql, named, rows, queueMs, databaseMs, tool } = summary;
  log.warn('slow statement', {
    request_id: requestId,
    ...contextFields(summary),
    ...(tool === null ? {} : { tool }),
    waited_ms: Math.round(queueMs),
    ran_ms: Math.round(databaseMs),
    rows,
    outcome,
    ...(named === null ? {} : { named }),
    statement: digest(sql ?? ''),
  });
}

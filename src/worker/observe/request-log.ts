// The log's lines about requests: writes with an unknown outcome, replies that were cut, slow statements, exceptions. Statements appear
// without literals.
import { type Log, whereThrown } from '../../shared/process/log.ts';
import { digest } from '../../shared/sql/digest.ts';
import {
  type ExchangeSummary,
  isSlow,
  type Observe,
  type Refused,
  type RequestRecord,
} from './observation.ts';
import { traceField } from './trace-context.ts';

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
    } else if (observation.kind === 'exception') {
      const { cause, requestId, traceId } = observation;
      log.error('an exception ended a request', {
        request: requestId,
        ...traceField(traceId),
        thrown: whereThrown(cause),
      });
    }
  };
}

/** Errors of MySQL have no code, and are not logged. */
function logFailure(log: Log, { requestId, traceId, head, status, code }: RequestRecord): void {
  if (code === null) return;
  const { endpoint } = head;
  log.debug?.('a request failed', {
    request: requestId,
    ...traceField(traceId),
    endpoint,
    status,
    code,
  });
}

function logRefused(log: Log, { client, status, code, reason, requestId }: Refused): void {
  const from = client === '' ? '-' : client;
  log.debug?.('a malformed request was rejected', {
    request: requestId,
    client: from,
    status,
    code,
    reason,
  });
}

function logStatements(log: Log, summary: ExchangeSummary): void {
  const { outcome, code, clientGone, isRead, rows, bytes } = summary;
  const of = { request: summary.requestId, ...traceField(summary.traceId) };
  const why = { code: code ?? '-' };
  if (outcome === 'unknown' && !isRead) {
    const statement = summary.sql === null ? '-' : digest(summary.sql);
    log.warn('the outcome of a write is unknown', { outcome, ...of, ...why, statement });
  } else if (clientGone && !isRead && outcome !== 'not_executed') {
    // A write that was not sent when its client left was withdrawn.
    log.warn('a write went on after its client had gone', { outcome, ...of });
  }
  if (summary.wasCut) log.warn('a reply was cut short', { ...why, ...of, rows, bytes });
}

function logSlow(log: Log, summary: ExchangeSummary): void {
  const { requestId, traceId, outcome, sql, rows, queueMs, databaseMs, tool } = summary;
  log.warn('slow statement', {
    request_id: requestId,
    ...traceField(traceId),
    ...(tool === null ? {} : { tool }),
    waited_ms: Math.round(queueMs),
    ran_ms: Math.round(databaseMs),
    rows,
    outcome,
    statement: digest(sql ?? ''),
  });
}

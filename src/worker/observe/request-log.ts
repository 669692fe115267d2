// What the log says of requests: what somebody must look after, will be asked about, or what took long.
// Must not know HTTP, nor where the log goes. Statements are told by their shape: never a literal.
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

/** @param slowMs the running time from which statements are slow; 0: none is */
export function createRequestLog(log: Log, slowMs: number): Observe {
  return (observation) => {
    if (observation.kind === 'statements finished') {
      tellExchange(log, observation.summary);
      if (isSlow(observation.summary, slowMs)) tellSlow(log, observation.summary);
    } else if (observation.kind === 'request finished') {
      if (log.debug !== null) tellFailure(log, observation.record);
    } else if (observation.kind === 'malformed request') {
      if (log.debug !== null) tellRefused(log, observation.refused);
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

/** MySQL's own errors have no code, and are no news. */
function tellFailure(log: Log, { requestId, traceId, head, status, code }: RequestRecord): void {
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

function tellRefused(log: Log, { client, status, code, reason, requestId }: Refused): void {
  const from = client === '' ? '-' : client;
  log.debug?.('what was no request was refused', {
    request: requestId,
    client: from,
    status,
    code,
    reason,
  });
}

function tellExchange(log: Log, summary: ExchangeSummary): void {
  const { outcome, code, clientGone, isRead, rows, bytes } = summary;
  const of = { request: summary.requestId, ...traceField(summary.traceId) };
  const why = { code: code ?? '-' };
  if (outcome === 'unknown' && !isRead) {
    const statement = summary.sql === null ? '-' : digest(summary.sql);
    log.warn('nobody knows what became of a write', { outcome, ...of, ...why, statement });
  } else if (clientGone && !isRead && outcome !== 'not_executed') {
    // What was not sent when its client left has been withdrawn.
    log.warn('a write went on after its client had gone', { outcome, ...of });
  }
  if (summary.wasCut) log.warn('a reply was cut short', { ...why, ...of, rows, bytes });
}

function tellSlow(log: Log, summary: ExchangeSummary): void {
  const { requestId, traceId, outcome, sql, rows, queueMs, databaseMs } = summary;
  log.warn('slow statement', {
    request_id: requestId,
    ...traceField(traceId),
    waited_ms: Math.round(queueMs),
    ran_ms: Math.round(databaseMs),
    rows,
    outcome,
    statement: digest(sql ?? ''),
  });
}

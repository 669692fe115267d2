// The log's lines about requests that were rejected for their origin or their Host: at most a few a minute, because anybody can cause them.
import { performance } from 'node:perf_hooks';
import type { Log } from '../../shared/process/log.ts';
import type { Observe, RequestRecord } from './observation.ts';
import { traceField } from './trace-context.ts';

/** How many lines a worker writes in one period. */
const maxLines = 5;
const periodMs = 60_000;
/** The longest part of a header in a line. */
const maxShown = 100;

/** Creates the observer that writes them. @param now in ms */
export function createRejectedPagesLog(
  log: Log,
  now: () => number = () => performance.now(),
): Observe {
  let since = now();
  let written = 0;
  let leftOut = 0;
  const isDue = (): boolean => {
    if (now() - since >= periodMs) {
      since = now();
      written = 0;
    }
    if (written === maxLines) {
      leftOut += 1;
      return false;
    }
    written += 1;
    return true;
  };
  return (observation) => {
    if (observation.kind !== 'request finished') return;
    const message = messageOf(observation.record);
    if (message === null || !isDue()) return;
    log.warn(message, describe(observation.record, leftOut));
    leftOut = 0;
  };
}

function messageOf({ code }: RequestRecord): string | null {
  if (code === 'CROSS_SITE') return 'a request of a web page was rejected (see allow_origins)';
  if (code === 'UNKNOWN_HOST') return 'a request was rejected for its Host (see allow_hosts)';
  return null;
}

/** @param leftOut how many lines were not written since the last one */
function describe({ request, requestId, traceId, head }: RequestRecord, leftOut: number) {
  const { origin, host, 'sec-fetch-site': site } = request.headers;
  return {
    origin: shorten(origin),
    host: shorten(host),
    ...(typeof site === 'string' && { site: shorten(site) }),
    endpoint: head.endpoint,
    request: requestId,
    ...traceField(traceId),
    ...(leftOut > 0 && { not_logged: leftOut }),
  };
}

function shorten(header: string | undefined): string {
  if (header === undefined) return '-';
  return header.length > maxShown ? `${header.slice(0, maxShown)}…` : header;
}

// Reports of the whole instance (/metrics, /v1/stats, /v1/requests, /v1/statements), and the end of a running request, in time.
import type { Ask, Options, Reply } from './ask.ts';
import { eventually } from './eventually.ts';

type Asked = Pick<Ask, 'request'>;

/** Gets a report, with the answer of every worker. Any other reply than a late one is returned. */
export function getReport(ask: Asked, path: string, options?: Options): Promise<Reply> {
  return inTime(path, () => ask.request(path, options));
}

/** Ends a running request by its number or its own id. Any other reply than a late one is returned. */
export function endRequest(ask: Asked, id: string, options?: Options): Promise<Reply> {
  const path = `/v1/requests/${encodeURIComponent(id)}`;
  return inTime(path, () => ask.request(path, { ...options, method: 'DELETE' }));
}

/**
 * Asks again while an answer is late. A worker has a second for an answer: on a busy machine the supervisor may take longer, and the reply is
 * 503; or another worker may, and is named in the list of requests.
 */
export function inTime(what: string, ask: () => Promise<Reply>): Promise<Reply> {
  return eventually(`${what} in time`, async () => {
    const reply = await ask();
    return !isLate(reply) && reply;
  });
}

/** A reply to HEAD has no code. */
const isLate = ({ status, text }: Reply) =>
  (status === 503 && (text === '' || text.includes('NO_METRICS'))) ||
  /"silent_workers":\[\d/.test(text);

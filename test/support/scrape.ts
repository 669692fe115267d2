// Numbers out of a gateway's /metrics.
import type { Ask } from './ask.ts';
import { eventually } from './eventually.ts';
import { parseExposition, type Samples, sumOf } from './exposition.ts';

/**
 * Scrapes until every worker has answered in time. On a busy machine one may be late: the scrape then has its last report, up to a second
 * old, or is refused.
 */
export function scrape(gateway: Ask): Promise<Samples> {
  return eventually('a scrape that every worker has answered', async () => {
    const { status, text } = await gateway.get('/metrics');
    if (status !== 200) throw new Error(`${status} ${text}`);
    const samples = parseExposition(text);
    return sumOf(samples, 'dbhttpd_workers_silent') === 0 && samples;
  });
}

/** Reads a metric: the sum over all samples of this name whose labels contain all of `labels`. */
export async function readMetric(
  gateway: Ask,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  return sumOf(await scrape(gateway), name, labels);
}

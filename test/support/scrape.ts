// Numbers out of a gateway's /metrics.
import type { Ask } from './ask.ts';
import { parseExposition, sumOf } from './exposition.ts';

/** Reads a metric: the sum over all samples of this name whose labels contain all of `labels`. */
export async function readMetric(
  gateway: Ask,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { text } = await gateway.get('/metrics');
  return sumOf(parseExposition(text), name, labels);
}

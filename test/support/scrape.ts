// Numbers out of a gateway's /metrics.
// Must not know what they mean.
import type { Ask } from './ask.ts';

/** Reads a metric: the sum over all samples of this name whose labels contain all of `labels`. */
export async function readMetric(
  gateway: Ask,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { text } = await gateway.get('/metrics');
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const line of text.split('\n')) {
    const match = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (match?.[1] !== name) continue;
    if (wanted.every((label) => match[2]?.includes(label))) sum += Number(match[3]);
  }
  return sum;
}

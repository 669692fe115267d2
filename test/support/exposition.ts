// Prometheus text as numbers, and whether its counters went back.

/** Values by sample: the metric's name with its labels, as they are written. */
export type Samples = ReadonlyMap<string, number>;

/** Reads an exposition. */
export function parseExposition(text: string): Samples {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' '))),
    ]),
  );
}

/** The counters that are lower after than before, or missing, in words. */
export function fallenCounters(before: Samples, after: Samples): string[] {
  return [...before].flatMap(([sample, value]) => {
    const isCounter = /^\w+_(total|count|bucket|sum)(\{|$)/.test(sample);
    const now = after.get(sample);
    return !isCounter || (now ?? -1) >= value ? [] : [`${sample}: ${value}, then ${now}`];
  });
}

/** The sum over all samples of this name whose labels contain all of `labels`. */
export function sumOf(
  samples: Samples,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const [sample, value] of samples) {
    const [, found, text = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    if (found === name && wanted.every((label) => text.includes(label))) sum += value;
  }
  return sum;
}

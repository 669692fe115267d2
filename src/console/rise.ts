// Whether something is far above what it was before, and since when.
// Pure. Must not know what is measured.

/** Values of one thing over time, the oldest first; null where nothing is known. */
export type Series = readonly (number | null)[];

/** A rise that has not ended. */
export type Rise = {
  readonly now: number;
  readonly before: number;
  /** The place of the first value that belongs to it; null: it began before the first one. */
  readonly since: number | null;
};

/** What is wrong for most of ten minutes is not what is usual: the calm fifth is. */
const calmShare = 0.2;

/**
 * Compares the latest values with those before.
 * @param recent how many are the latest ones
 * @param factor how many times as much is a rise
 * @param now what the latest ones come to; their median unless given
 * @param usual what is known of the time before the first value
 */
export function findRise(
  series: Series,
  recent: number,
  factor: number,
  now: number | null = quantileOf(series.slice(-recent), 0.5),
  usual: number | null = null,
): Rise | null {
  const before = leastOf(quantileOf(series.slice(0, -recent), calmShare), usual);
  if (now === null || before === null || now < factor * before) return null;
  // Nearer to what it is now than to what it was, on a log scale.
  const middle = Math.sqrt(now * before);
  let since = series.length;
  while (since > 0 && (series[since - 1] ?? Number.POSITIVE_INFINITY) >= middle) since -= 1;
  if (since === 0) return { now, before, since: null };
  return { now, before, since: Math.min(since, series.length - 1) };
}

/** The value below which this share of the known ones lies; null: none is known. */
export function quantileOf(values: Series, share: number): number | null {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return known[Math.floor(share * known.length)] ?? null;
}

function leastOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

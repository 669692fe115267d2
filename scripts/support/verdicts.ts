// Promises, and whether a run kept them: collects breaches by promise, and makes verdicts of them.
import { median } from './statistics.ts';

/** The verdict on one promise. `kept` null: the run was too short. */
export type Verdict = {
  readonly promise: string;
  readonly kept: boolean | null;
  readonly found: string;
};

const maxExamples = 5;

/** Counts events, and keeps the first examples of breaches. */
export class Findings {
  readonly #counts = new Map<string, number>();
  readonly #breaches: ReadonlyMap<string, { count: number; readonly examples: string[] }>;

  constructor(promises: readonly string[]) {
    this.#breaches = new Map(promises.map((promise) => [promise, { count: 0, examples: [] }]));
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  breach(promise: string, example: string): void {
    const breaches = this.#breaches.get(promise);
    if (breaches === undefined) throw new Error(`no such promise: ${promise}`);
    breaches.count += 1;
    if (breaches.examples.length < maxExamples) breaches.examples.push(example);
  }

  /** The number of breaches of all promises. */
  breaches(): number {
    return [...this.#breaches.values()].reduce((sum, { count }) => sum + count, 0);
  }

  /** The number of times that each thing happened, the most frequent first. */
  counts(): string {
    return [...this.#counts]
      .sort(([, left], [, right]) => right - left)
      .map(([what, count]) => `${count} ${what}`)
      .join(', ');
  }

  verdicts(): Verdict[] {
    return [...this.#breaches].map(([promise, { count, examples }]) => ({
      promise,
      kept: count === 0,
      found: count === 0 ? '' : `${count} times: ${examples.join(' | ')}`,
    }));
  }
}

/** A measurement at a moment of the run. `quiet`: there was no fault at that time. */
export type Measured = { readonly atMs: number; readonly quiet: boolean; readonly value: number };

const minSamples = 5;

/**
 * Judges whether a figure has not grown: the average of the last quarter of the run may exceed that of the second quarter by `share`.
 * Caches and pools fill in the first quarter, and only quiet moments count. For small whole numbers use the mean: a median jumps by whole
 * numbers, and one of eighteen is more than 5 %.
 */
export function judgeFlat(
  what: string,
  samples: readonly Measured[],
  runMs: number,
  share: number,
  average: (values: readonly number[]) => number = median,
): Verdict {
  const promise = `${what}: flat within ${Math.round(share * 100)} %`;
  const within = (from: number, to: number) =>
    samples
      .filter(({ atMs, quiet }) => quiet && atMs >= from * runMs && atMs < to * runMs)
      .map(({ value }) => value);
  const [early, late] = [within(0.25, 0.5), within(0.75, 1)];
  if (Math.min(early.length, late.length) < minSamples) {
    const found = `${early.length} and ${late.length} samples, ${minSamples} needed`;
    return { promise, kept: null, found };
  }
  const [before, after] = [average(early), average(late)];
  const percent = ((after / before - 1) * 100).toFixed(1);
  const found = `${before.toFixed(1)}, then ${after.toFixed(1)} (${percent} %; ${early.length} and ${late.length} samples)`;
  return { promise, kept: after <= before * (1 + share), found };
}

/** Judges whether all times except a `share` (at least one) are within the bound. */
export function judgeQuick(
  what: string,
  times: readonly number[],
  boundMs: number,
  share: number,
): Verdict {
  const promise = `${what} within ${boundMs} ms, ${Math.round((1 - share) * 100)} of 100 times`;
  if (times.length === 0) return { promise, kept: null, found: 'no samples' };
  const late = times.filter((time) => time > boundMs).length;
  const found = `${late} of ${times.length} later, the slowest ${Math.round(Math.max(...times))} ms`;
  return { promise, kept: late <= Math.ceil(times.length * share), found };
}

/** The table for people. */
export function renderVerdicts(verdicts: readonly Verdict[]): string {
  const word = ({ kept }: Verdict) => (kept === null ? 'unknown' : kept ? 'kept' : 'BROKEN');
  return verdicts
    .map((verdict) => `${word(verdict).padEnd(10)}${verdict.promise}  ${verdict.found}`.trimEnd())
    .join('\n');
}

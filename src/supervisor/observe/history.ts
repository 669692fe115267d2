// The last ten minutes of an instance, a point every two seconds: what is needed to see since when something is as it is.
// Must not know where the figures come from, nor who looks.
import { outcomes } from '../../shared/failure-codes.ts';
import type { HistoryStats } from '../../shared/observe/stats.ts';
import { durationBounds, type Figures } from './figures.ts';

/** How far apart the points are. */
export const historyIntervalMs = 2000;
const mostPoints = 300;

type Point = {
  readonly at: number;
  readonly rates: Readonly<Record<string, number>>;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly waits: number | null;
  readonly firstRow: number | null;
  readonly busy: number;
  readonly max: number;
  readonly waiting: number;
};

/** One instance's. */
export class History {
  readonly #points: Point[] = [];
  #before: { readonly atMs: number; readonly figures: Figures } | null = null;

  /** Takes note of the figures of this moment; the first ones are only what later ones are held against. */
  note(figures: Figures, atMs: number): void {
    const before = this.#before;
    this.#before = { atMs, figures };
    if (before === null || atMs <= before.atMs) return;
    const seconds = (atMs - before.atMs) / 1000;
    const quantile = (share: number, of: (figures: Figures) => readonly number[]) =>
      quantileMs(subtract(of(figures), of(before.figures)), share);
    const whole = ({ durations }: Figures) => durations;
    this.#points.push({
      at: Math.round(atMs / 1000),
      rates: ratesOf(before.figures.outcomes, figures.outcomes, seconds),
      p50: quantile(0.5, whole),
      p95: quantile(0.95, whole),
      p99: quantile(0.99, whole),
      waits: quantile(0.95, ({ phases }) => phases.waiting),
      firstRow: quantile(0.95, ({ phases }) => phases.first_row),
      busy: figures.busy,
      max: figures.max,
      waiting: figures.waiting,
    });
    if (this.#points.length > mostPoints) this.#points.shift();
  }

  /** What is known of them, the oldest point first. */
  told(): HistoryStats {
    const points = this.#points;
    const line = <Value>(of: (point: Point) => Value) => points.map(of);
    return {
      interval_seconds: historyIntervalMs / 1000,
      at: line(({ at }) => at),
      outcomes: Object.fromEntries(
        outcomes.map((outcome) => [outcome, line(({ rates }) => rates[outcome] ?? 0)]),
      ),
      latency_ms: {
        p50: line(({ p50 }) => p50),
        p95: line(({ p95 }) => p95),
        p99: line(({ p99 }) => p99),
      },
      phases_p95_ms: {
        waiting: line(({ waits }) => waits),
        first_row: line(({ firstRow }) => firstRow),
      },
      connections: { busy: line(({ busy }) => busy), max: line(({ max }) => max) },
      waiting: line(({ waiting }) => waiting),
    };
  }
}

function subtract(counts: readonly number[], before: readonly number[]): readonly number[] {
  return counts.map((count, at) => count - (before[at] ?? 0));
}

function ratesOf(
  before: Readonly<Record<string, number>>,
  now: Readonly<Record<string, number>>,
  seconds: number,
): Readonly<Record<string, number>> {
  const rate = (name: string) => Math.max(0, (now[name] ?? 0) - (before[name] ?? 0)) / seconds;
  return Object.fromEntries(Object.keys(now).map((name) => [name, rounded(rate(name))]));
}

/**
 * The duration below which so many requests stayed, in ms, as far as buckets tell: within one they are taken to be spread
 * evenly. Null: there were none.
 * @param counts one more than there are bounds, not cumulative
 */
export function quantileMs(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + Math.max(0, count), 0);
  if (total === 0) return null;
  let left = share * total;
  for (const [index, count] of counts.entries()) {
    const from = durationBounds[index - 1] ?? 0;
    const to = durationBounds[index] ?? from;
    if (count > 0 && left <= count) return rounded(1000 * (from + ((to - from) * left) / count));
    left -= Math.max(0, count);
  }
  return rounded(1000 * (durationBounds.at(-1) ?? 0));
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

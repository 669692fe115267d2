// Values that are far above what they were, and since when: of any series, and of each statement's time.
import type { Statement, ToldStatements } from './ask.ts';

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
  const before = minOf(quantileOf(series.slice(0, -recent), calmShare), usual);
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

function minOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** A statement's last seconds. */
export type Lately = {
  readonly statement: Statement;
  /** Of the time of all statements. */
  readonly share: number;
  readonly meanMs: number | null;
  /** Time spent in it by points of the last ten minutes. */
  readonly trend: readonly number[];
  /** It takes far longer than before; null: it does not. */
  readonly rise: Rise | null;
};

/** The point that is under way, and the one before. */
const recent = 2;
const factor = 5;
const minMs = 10;
const minRuns = 3;
const minShare = 0.1;
/** From so many runs on what it took before the ten minutes is called usual. */
const minEarlierRuns = 20;

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Looks at all of them; those of which nothing is told have taken little. */
export function lookLately({ statements }: ToldStatements): readonly Lately[] {
  const busyMs = ({ history }: Statement) => sum(history?.total_ms.slice(-recent) ?? []);
  const wholeMs = sum(statements.map(busyMs));
  return statements.flatMap((statement) => {
    const { history } = statement;
    if (history === null) return [];
    const runs = sum(history.count.slice(-recent));
    const meanMs = runs === 0 ? null : busyMs(statement) / runs;
    const share = wholeMs === 0 ? 0 : busyMs(statement) / wholeMs;
    const isWorthIt = meanMs !== null && meanMs >= minMs && runs >= minRuns && share >= minShare;
    const rise = isWorthIt
      ? findRise(meansOf(history), recent, factor, meanMs, earlierMeanOf(statement, history))
      : null;
    return [{ statement, share, meanMs, trend: history.total_ms, rise }];
  });
}

type History = NonNullable<Statement['history']>;

function meansOf({ count, total_ms }: History): Series {
  return count.map((runs, at) => (runs === 0 ? null : (total_ms[at] ?? 0) / runs));
}

function earlierMeanOf({ count, total_ms }: Statement, history: History): number | null {
  const runs = count - sum(history.count);
  return runs < minEarlierRuns ? null : (total_ms - sum(history.total_ms)) / runs;
}

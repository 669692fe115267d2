// Values that are far above what they were, and since when: of any series, and of each statement's time.
import type { ListedStatement, StatementList } from '../shared/observe/statement-sums.ts';
import type { Series } from '../shared/observe/stats.ts';

/** A rise that still lasts. */
export type Rise = {
  readonly now: number;
  readonly before: number;
  /** The index of its first value; null: it began before the first value. */
  readonly since: number | null;
};

/** The usual value is that of the calmest fifth: trouble may last for most of the ten minutes. */
const calmShare = 0.2;

/**
 * Compares the latest values with those before.
 * @param recent the number of latest values
 * @param factor how many times the usual value is a rise
 * @param now the latest value; the median of the latest values unless given
 * @param usual the usual value before the first one, if known
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
  // On a log scale, values above the middle are nearer to the present than to the usual value.
  const middle = Math.sqrt(now * before);
  let since = series.length;
  while (since > 0 && (series[since - 1] ?? Number.POSITIVE_INFINITY) >= middle) since -= 1;
  if (since === 0) return { now, before, since: null };
  return { now, before, since: Math.min(since, series.length - 1) };
}

/** The value below which this share of the known values lies; null: none is known. */
export function quantileOf(values: Series, share: number): number | null {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return known[Math.floor(share * known.length)] ?? null;
}

function minOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** A statement's last seconds. */
export type Lately = {
  readonly statement: ListedStatement;
  /** The share of the time of all statements. */
  readonly share: number;
  readonly meanMs: number | null;
  /** Its time at each point of the last ten minutes. */
  readonly trend: readonly number[];
  /** Null: it does not take much longer than before. */
  readonly rise: Rise | null;
};

/** The incomplete point, and the one before. */
const recent = 2;
const factor = 5;
const minMs = 10;
const minRuns = 3;
const minShare = 0.1;
/** The number of earlier runs that make their mean a usual value. */
const minEarlierRuns = 20;

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** Describes the last seconds of all statements that have a history. */
export function lookLately({ statements }: StatementList): readonly Lately[] {
  const busyMs = ({ history }: ListedStatement) => sum(history?.total_ms.slice(-recent) ?? []);
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

type History = NonNullable<ListedStatement['history']>;

function meansOf({ count, total_ms }: History): Series {
  return count.map((runs, at) => (runs === 0 ? null : (total_ms[at] ?? 0) / runs));
}

function earlierMeanOf({ count, total_ms }: ListedStatement, history: History): number | null {
  const runs = count - sum(history.count);
  return runs < minEarlierRuns ? null : (total_ms - sum(history.total_ms)) / runs;
}

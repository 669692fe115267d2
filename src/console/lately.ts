// What a statement takes now, beside what it used to take.
// Pure. Must not know the page.
import type { Statement, ToldStatements } from './ask.ts';
import { findRise, type Rise, type Series } from './rise.ts';

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
const leastMs = 10;
const leastRuns = 3;
const leastShare = 0.1;
/** From so many runs on what it took before the ten minutes is called usual. */
const leastEarlierRuns = 20;

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
    const isWorthIt =
      meanMs !== null && meanMs >= leastMs && runs >= leastRuns && share >= leastShare;
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
  return runs < leastEarlierRuns ? null : (total_ms - sum(history.total_ms)) / runs;
}

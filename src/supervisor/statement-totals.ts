// All workers' statements since the start, the dead workers' included: in bounded memory, those that took most time are right.
// Must not know processes or messages.
import { latencyPercentile } from '../shared/process/latency-buckets.ts';
import {
  mostToldStatements,
  StatementSums,
  type StatementsReport,
  type SumsPart,
  type ToldStatements,
} from '../shared/process/statement-sums.ts';

/** How many are kept apart; when one more comes, half of them go to make room. */
const mostStatements = 3000;
/** How many stay for the time that they have taken in all, and how many for that of late. */
const mostKept = 1000;
/** What a statement's time counts for when room is made the next time, when it is asked who has taken most of late. */
const fading = 0.5;

type Statement = {
  readonly name: string;
  readonly section: string;
  readonly digest: string;
  readonly sums: StatementSums;
  recentMs: number;
};

/** The statements of one instance. */
export class StatementTotals {
  readonly #byName = new Map<string, Statement>();
  readonly #other = new StatementSums();

  /** Adds what a worker tells. */
  add({ statements, other }: StatementsReport): void {
    for (const { section, digest, sums } of statements) this.#add(section, digest, sums);
    if (other !== null) this.#other.add(other);
  }

  #add(section: string, digest: string, part: SumsPart): void {
    const name = `${section}\n${digest}`;
    let statement = this.#byName.get(name);
    if (statement === undefined) {
      if (this.#byName.size >= mostStatements) this.#makeRoom();
      statement = { name, section, digest, sums: new StatementSums(), recentMs: 0 };
      this.#byName.set(name, statement);
    }
    statement.sums.add(part);
    statement.recentMs += part.totalMs;
  }

  /** What is new must be able to stay beside what has been summed up for months. */
  #makeRoom(): void {
    const all = [...this.#byName.values()];
    const byTime = all.toSorted((one, other) => other.sums.totalMs - one.sums.totalMs);
    const stay = new Set(byTime.slice(0, mostKept));
    all.sort((one, other) => other.recentMs - one.recentMs);
    for (const statement of all.slice(0, mostKept)) stay.add(statement);
    for (const statement of all) {
      statement.recentMs *= fading;
      if (stay.has(statement)) continue;
      this.#other.merge(statement.sums);
      this.#byName.delete(statement.name);
    }
  }

  /** Those that have taken most time, the longest first, and at last all others as one line. */
  told(): ToldStatements {
    const all = [...this.#byName.values()];
    all.sort((one, other) => other.sums.totalMs - one.sums.totalMs);
    const others = new StatementSums();
    others.merge(this.#other);
    for (const { sums } of all.slice(mostToldStatements)) others.merge(sums);
    const shown = all.slice(0, mostToldStatements);
    const wholeMs = shown.reduce((sum, { sums }) => sum + sums.totalMs, others.totalMs);
    const statements = shown.map(({ section, digest, sums }) => ({
      digest,
      section,
      ...describeSums(sums, wholeMs),
    }));
    return { statements: [...statements, { digest: 'other', ...describeSums(others, wholeMs) }] };
  }
}

function describeSums(sums: StatementSums, wholeMs: number) {
  const { count, rows, totalMs, lastSeenMs, exampleId } = sums;
  const errors = Object.fromEntries(sums.errors);
  return {
    count,
    errors: Object.values(errors).reduce((sum, one) => sum + one, 0),
    errors_by: errors,
    rows,
    total_ms: round(totalMs, 3),
    share: wholeMs === 0 ? 0 : round(totalMs / wholeMs, 6),
    p50_ms: percentile(sums, 0.5),
    p95_ms: percentile(sums, 0.95),
    p99_ms: percentile(sums, 0.99),
    last_seen: lastSeenMs === 0 ? null : new Date(lastSeenMs).toISOString(),
    example_id: exampleId === '' ? null : exampleId,
  };
}

function percentile({ latencies, longestMs }: StatementSums, share: number): number | null {
  const ms = latencyPercentile(latencies, share, longestMs);
  return ms === null ? null : round(ms, 3);
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

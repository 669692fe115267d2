// The statements of all workers since the start, of ended ones too, in bounded memory. The sums of those that took most time are exact.
import {
  latencyPercentile,
  maxListedHistories,
  maxListedStatements,
  type StatementHistory,
  type StatementReport,
  StatementSums,
  type StatementSumsList,
  type StatementsReport,
} from '../../shared/observe/statement-sums.ts';

/** The time between two points of a history. */
export const statementIntervalMs = 10_000;
/** How many points a history has, with the one that has not ended. */
const statementPoints = 60;

/** The points of one statement, in a ring. */
class RecentPoints {
  readonly #counts = new Float32Array(statementPoints);
  readonly #totalMs = new Float32Array(statementPoints);

  /** @param point the number of the point since the start */
  add(point: number, count: number, totalMs: number): void {
    const at = point % statementPoints;
    this.#counts[at] = (this.#counts[at] as number) + count;
    this.#totalMs[at] = (this.#totalMs[at] as number) + totalMs;
  }

  /** Begins a point, in place of the one that is ten minutes old. */
  begin(point: number): void {
    this.#counts[point % statementPoints] = 0;
    this.#totalMs[point % statementPoints] = 0;
  }

  /** The time of all points. */
  sumMs(): number {
    return this.#totalMs.reduce((sum, ms) => sum + ms, 0);
  }

  /** The points from one to another, both included. */
  history(from: number, to: number): StatementHistory {
    const points = Array.from({ length: to - from + 1 }, (_, at) => (from + at) % statementPoints);
    return {
      count: points.map((at) => this.#counts[at] as number),
      total_ms: points.map((at) => Number((this.#totalMs[at] as number).toFixed(2))),
    };
  }
}

/** How many statements have sums of their own. To make room for one more, many are merged. */
const maxStatements = 3000;
/** How many statements stay for their total time, and how many for their recent time. */
const maxKept = 1000;
/** How much recent time counts the next time that room is made. */
const fading = 0.5;

type Statement = {
  readonly name: string;
  readonly section: string;
  readonly client: string;
  readonly named: string | null;
  readonly digest: string;
  readonly sums: StatementSums;
  readonly past: RecentPoints;
  recentMs: number;
};

/** The statements of one instance. */
export class StatementTotals {
  readonly #byName = new Map<string, Statement>();
  readonly #other = new StatementSums();
  /** When the latest points began, in seconds since 1970. */
  readonly #pointsAt: number[];
  /** The number of the point that has not ended. */
  #point = 0;

  /** @param nowMs since 1970 */
  constructor(nowMs: number) {
    this.#pointsAt = [Math.round(nowMs / 1000)];
  }

  /** Ends a point and begins the next; to be called every `statementIntervalMs`. */
  beginPoint(nowMs: number): void {
    this.#point += 1;
    this.#pointsAt.push(Math.round(nowMs / 1000));
    if (this.#pointsAt.length > statementPoints) this.#pointsAt.shift();
    for (const { past } of this.#byName.values()) past.begin(this.#point);
  }

  /** Adds the report of a worker. */
  add({ statements, other }: StatementsReport): void {
    for (const statement of statements) this.#add(statement);
    if (other !== null) this.#other.add(other);
  }

  #add({ section, client, named, digest, sums: report }: StatementReport): void {
    const name = `${section}\n${client}\n${named === null ? digest : `\n${named}`}`;
    let statement = this.#byName.get(name);
    if (statement === undefined) {
      if (this.#byName.size >= maxStatements) this.#makeRoom();
      const [sums, past] = [new StatementSums(), new RecentPoints()];
      statement = { name, section, client, named, digest, sums, past, recentMs: 0 };
      this.#byName.set(name, statement);
    }
    statement.sums.add(report);
    statement.past.add(this.#point, report.count, report.totalMs);
    statement.recentMs += report.totalMs;
  }

  /** New statements must be able to stay beside those that have been summed up for months. */
  #makeRoom(): void {
    const all = [...this.#byName.values()];
    const byTime = all.toSorted((one, other) => other.sums.totalMs - one.sums.totalMs);
    const stay = new Set(byTime.slice(0, maxKept));
    all.sort((one, other) => other.recentMs - one.recentMs);
    for (const statement of all.slice(0, maxKept)) stay.add(statement);
    for (const statement of all) {
      statement.recentMs *= fading;
      if (stay.has(statement)) continue;
      this.#other.merge(statement.sums);
      this.#byName.delete(statement.name);
    }
  }

  /** The statements that took most time, in total or in the last ten minutes, the longest first; the last entry sums up all others. */
  list(): StatementSumsList {
    const all = [...this.#byName.values()];
    all.sort((one, other) => other.sums.totalMs - one.sums.totalMs);
    const busy = findBusy(all);
    const rest = all.filter((statement) => !busy.has(statement));
    const shown = new Set([...busy, ...rest.slice(0, maxListedStatements - busy.size)]);
    const others = new StatementSums();
    others.merge(this.#other);
    for (const statement of all) if (!shown.has(statement)) others.merge(statement.sums);
    const wholeMs = all.reduce((sum, { sums }) => sum + sums.totalMs, this.#other.totalMs);
    const from = this.#point - this.#pointsAt.length + 1;
    const listed = all.filter((statement) => shown.has(statement));
    const statements = listed.map((statement) => ({
      digest: statement.digest,
      section: statement.section,
      client: statement.client,
      ...(statement.named !== null && { name: statement.named }),
      ...describeSums(statement.sums, wholeMs),
      history: busy.has(statement) ? statement.past.history(from, this.#point) : null,
    }));
    const last = { digest: 'other', ...describeSums(others, wholeMs), history: null };
    const history = { interval_seconds: statementIntervalMs / 1000, at: [...this.#pointsAt] };
    return { history, statements: [...statements, last] };
  }
}

/** The statements that took most time in the last ten minutes. */
function findBusy(all: readonly Statement[]): ReadonlySet<Statement> {
  const taken = all.map((statement) => ({ statement, ms: statement.past.sumMs() }));
  const busy = taken.filter(({ ms }) => ms > 0).sort((one, other) => other.ms - one.ms);
  return new Set(busy.slice(0, maxListedHistories).map(({ statement }) => statement));
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

// All workers' statements since the start, the dead workers' included: in bounded memory, those that took most time are right.
// Must not know processes or messages.
import {
  latencyPercentile,
  maxListedHistories,
  maxListedStatements,
  type StatementHistory,
  type StatementList,
  StatementSums,
  type StatementsReport,
  type SumsReport,
} from '../../shared/observe/statement-sums.ts';

/** How far apart the points are. */
export const statementIntervalMs = 10_000;
/** How many there are, the one that is under way among them. */
export const statementPoints = 60;

/** One statement's, in a ring: some KiB, however long it is kept. */
export class RecentPoints {
  readonly #counts = new Float32Array(statementPoints);
  readonly #totalMs = new Float32Array(statementPoints);

  /** @param point counted since the start of all */
  add(point: number, count: number, totalMs: number): void {
    const at = point % statementPoints;
    this.#counts[at] = (this.#counts[at] as number) + count;
    this.#totalMs[at] = (this.#totalMs[at] as number) + totalMs;
  }

  /** A point begins, in the place of the one that is ten minutes old. */
  begin(point: number): void {
    this.#counts[point % statementPoints] = 0;
    this.#totalMs[point % statementPoints] = 0;
  }

  /** The time of all points. */
  sumMs(): number {
    return this.#totalMs.reduce((sum, ms) => sum + ms, 0);
  }

  /** The points from one to another, both among them. */
  told(from: number, to: number): StatementHistory {
    const points = Array.from({ length: to - from + 1 }, (_, at) => (from + at) % statementPoints);
    return {
      count: points.map((at) => this.#counts[at] as number),
      total_ms: points.map((at) => Number((this.#totalMs[at] as number).toFixed(2))),
    };
  }
}

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
  readonly past: RecentPoints;
  recentMs: number;
};

/** The statements of one instance. */
export class StatementTotals {
  readonly #byName = new Map<string, Statement>();
  readonly #other = new StatementSums();
  /** When the latest points began, in seconds since 1970. */
  readonly #pointsAt: number[];
  /** The number of the one that is under way. */
  #point = 0;

  /** @param nowMs since 1970 */
  constructor(nowMs: number) {
    this.#pointsAt = [Math.round(nowMs / 1000)];
  }

  /** Ends a point of the last ten minutes and begins the next; to be called every `statementIntervalMs`. */
  beginPoint(nowMs: number): void {
    this.#point += 1;
    this.#pointsAt.push(Math.round(nowMs / 1000));
    if (this.#pointsAt.length > statementPoints) this.#pointsAt.shift();
    for (const { past } of this.#byName.values()) past.begin(this.#point);
  }

  /** Adds what a worker tells. */
  add({ statements, other }: StatementsReport): void {
    for (const { section, digest, sums } of statements) this.#add(section, digest, sums);
    if (other !== null) this.#other.add(other);
  }

  #add(section: string, digest: string, part: SumsReport): void {
    const name = `${section}\n${digest}`;
    let statement = this.#byName.get(name);
    if (statement === undefined) {
      if (this.#byName.size >= mostStatements) this.#makeRoom();
      const [sums, past] = [new StatementSums(), new RecentPoints()];
      statement = { name, section, digest, sums, past, recentMs: 0 };
      this.#byName.set(name, statement);
    }
    statement.sums.add(part);
    statement.past.add(this.#point, part.count, part.totalMs);
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

  /** Those that have taken most time, in all or in the last ten minutes, the longest first; and at last all others as one line. */
  told(): StatementList {
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
    const told = all.filter((statement) => shown.has(statement));
    const statements = told.map((statement) => ({
      digest: statement.digest,
      section: statement.section,
      ...describeSums(statement.sums, wholeMs),
      history: busy.has(statement) ? statement.past.told(from, this.#point) : null,
    }));
    const last = { digest: 'other', ...describeSums(others, wholeMs), history: null };
    const history = { interval_seconds: statementIntervalMs / 1000, at: [...this.#pointsAt] };
    return { history, statements: [...statements, last] };
  }
}

/** Those that have taken most time in the last ten minutes. */
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

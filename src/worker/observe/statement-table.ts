// What has come to each statement since the supervisor was last told: in bounded memory, however many statements there are.
// Must not know who sums it up. Holds no literal: of a text, its digest alone is kept.
import { errorName } from '../../shared/mysql/error-names.ts';
import {
  type StatementReport,
  type StatementRun,
  StatementSums,
  type StatementsReport,
} from '../../shared/observe/statement-sums.ts';
import { digest } from '../../shared/sql/digest.ts';
import { DigestKeys } from '../../shared/sql/digest-key.ts';
import type { ExchangeSummary, Observation } from './observation.ts';

/** How many are kept apart; when one more comes, the half that has taken least time of late goes to make room. */
const mostStatements = 2000;
/** One digest may have several keys. When there is room for no more, all are found anew. */
const mostKeys = 8192;
/** What one report tells; the rest waits for the next. */
const mostTold = 500;
/** What a statement's time counts for a second later, when it is asked which have taken least: half after seven. */
const fading = 0.9;

type Statement = {
  readonly name: string;
  readonly section: string;
  readonly digest: string;
  readonly sums: StatementSums;
  /** The time before the sums began, the older the less. */
  earlierMs: number;
};

/** The statements of one worker, all its sections together. */
export class StatementTable {
  readonly #byKey = new Map<number, Statement>();
  readonly #byName = new Map<string, Statement>();
  readonly #other = new StatementSums();
  /** Of statements that went, for those that come: thousands a second may. */
  readonly #spare: StatementSums[] = [];
  readonly #keys = new DigestKeys();
  readonly #seeds = new Map<string, number>();

  observe(observation: Observation): void {
    if (observation.kind === 'statements finished') this.#count(observation.summary);
  }

  #count(summary: ExchangeSummary): void {
    const { sql, section } = summary;
    if (sql === null) return;
    const key = this.#keys.keyOf(sql, this.#seedOf(section));
    const statement = this.#byKey.get(key) ?? this.#find(key, section, sql);
    statement.sums.addRun(runOf(summary));
  }

  /** Sections are few, and named by the configuration. */
  #seedOf(section: string): number {
    let seed = this.#seeds.get(section);
    if (seed === undefined) {
      seed = this.#seeds.size + 1;
      this.#seeds.set(section, seed);
    }
    return seed;
  }

  /** What has come since the last report, the longest first. Null: nothing. To be asked once a second. */
  take(): StatementsReport | null {
    const changed = [...this.#byName.values()].filter(({ sums }) => sums.count > 0);
    changed.sort((one, other) => other.sums.totalMs - one.sums.totalMs);
    const now = Date.now();
    const statements = changed.slice(0, mostTold).map((statement) => tell(statement, now));
    for (const statement of this.#byName.values()) statement.earlierMs *= fading;
    this.#other.lastSeenMs = now;
    const other = this.#other.count > 0 ? this.#other.part() : null;
    this.#other.clear();
    return statements.length === 0 && other === null ? null : { statements, other };
  }

  #find(key: number, section: string, sql: string): Statement {
    const shape = digest(sql);
    const name = `${section}\n${shape}`;
    const statement = this.#byName.get(name) ?? this.#admit(name, section, shape);
    if (this.#byKey.size >= mostKeys) this.#byKey.clear();
    this.#byKey.set(key, statement);
    return statement;
  }

  #admit(name: string, section: string, shape: string): Statement {
    if (this.#byName.size >= mostStatements) this.#makeRoom();
    const sums = this.#spare.pop() ?? new StatementSums();
    const statement = { name, section, digest: shape, sums, earlierMs: 0 };
    this.#byName.set(name, statement);
    return statement;
  }

  #makeRoom(): void {
    const weigh = ({ sums, earlierMs }: Statement) => sums.totalMs + earlierMs;
    const all = [...this.#byName.values()].sort((one, other) => weigh(other) - weigh(one));
    for (const { name, sums } of all.slice(mostStatements / 2)) {
      this.#other.merge(sums);
      this.#byName.delete(name);
      sums.clear();
      this.#spare.push(sums);
    }
    this.#byKey.clear();
  }
}

/** @param now since 1970: they were seen since the last time, a second ago */
function tell(statement: Statement, now: number): StatementReport {
  const { section, digest: shape, sums } = statement;
  sums.lastSeenMs = now;
  const part = { section, digest: shape, sums: sums.part() };
  statement.earlierMs += sums.totalMs;
  sums.clear();
  return part;
}

/** MySQL's own errors are told by their names, others by their codes. */
function errorOf({ outcome, code, errno }: ExchangeSummary): string | null {
  if (outcome === 'ok') return null;
  return code ?? (errno === null ? outcome : errorName(errno));
}

function runOf(summary: ExchangeSummary): StatementRun {
  const { rows, databaseMs, outcome, requestId } = summary;
  const isExecuted = outcome !== 'not_executed';
  return { rows, databaseMs: isExecuted ? databaseMs : null, error: errorOf(summary), requestId };
}

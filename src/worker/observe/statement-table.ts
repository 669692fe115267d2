// The sums of each statement since the last report to the supervisor, in bounded memory however many statements there are. It keeps no
// literals: of a SQL text only the digest.
import { errorName } from '../../shared/mysql/error-names.ts';
import {
  type StatementReport,
  StatementSums,
  type StatementsReport,
} from '../../shared/observe/statement-sums.ts';
import { digest } from '../../shared/sql/digest.ts';
import { DigestKeys } from '../../shared/sql/digest-key.ts';
import type { ExchangeSummary, Observation } from './observation.ts';

/** How many statements of clients have sums of their own. To make room for one more, the half that took least time recently is merged. */
const maxStatements = 2000;
/** The limit on keys, of which a digest may have several. Beyond it all keys are dropped, and found again. */
const maxKeys = 8192;
/** The limit on statements in one report; the rest waits for the next report. */
const maxReported = 500;
/** The limit on clients of a section that have a seed. */
const maxSeeds = 4096;
/** How much earlier time counts after each second: half after seven seconds. */
const fading = 0.9;

type Statement = {
  readonly name: string;
  readonly section: string;
  readonly client: string;
  /** The named statement; null: the statement has no name. */
  readonly named: string | null;
  readonly digest: string;
  readonly sums: StatementSums;
  /** The time before the sums began, which fades. */
  earlierMs: number;
};

/** The statements of one worker, all its sections together. */
export class StatementTable {
  readonly #byKey = new Map<number, Statement>();
  readonly #byName = new Map<string, Statement>();
  readonly #other = new StatementSums();
  /** Sums of removed statements, to be used again: thousands of statements may come in a second. */
  readonly #spare: StatementSums[] = [];
  readonly #keys = new DigestKeys();
  readonly #seeds = new Map<string, Map<string, number>>();
  #lastSeed = 0;

  observe(observation: Observation): void {
    if (observation.kind === 'statements finished') this.#count(observation.summary);
  }

  #count(summary: ExchangeSummary): void {
    const { sql, named, rows, outcome, databaseMs, requestId } = summary;
    if (sql === null) return;
    const statement =
      named === null ? this.#findByText(summary, sql) : this.#findByName(summary, named, sql);
    const ranMs = outcome === 'not_executed' ? null : databaseMs;
    statement.sums.addRun(rows, ranMs, errorOf(summary), requestId);
  }

  #findByText(summary: ExchangeSummary, sql: string): Statement {
    const { section, client } = summary;
    const key = this.#keys.keyOf(sql, this.#seedOf(section, client));
    return this.#byKey.get(key) ?? this.#find(key, summary, sql);
  }

  /** A named statement is one, whatever its choices. It is shown with the digest of its first call. */
  #findByName({ section, client }: ExchangeSummary, named: string, sql: string): Statement {
    const name = `${section}\n${client}\n\n${named}`;
    const admit = () => this.#admit({ name, section, client, named, digest: digest(sql) });
    return this.#byName.get(name) ?? admit();
  }

  #seedOf(section: string, client: string): number {
    return this.#seeds.get(section)?.get(client) ?? this.#addSeed(section, client);
  }

  /** A seed is never used for two clients. Files of clients may change for years, so unused ones are dropped. */
  #addSeed(section: string, client: string): number {
    this.#lastSeed += 1;
    const known = this.#seeds.get(section);
    if (known === undefined || known.size >= maxSeeds) {
      this.#seeds.set(section, new Map([[client, this.#lastSeed]]));
    } else {
      known.set(client, this.#lastSeed);
    }
    return this.#lastSeed;
  }

  /** Returns the sums since the last report, the longest first, and clears them. Null: nothing has run. To be called once a second. */
  take(): StatementsReport | null {
    const changed = [...this.#byName.values()].filter(({ sums }) => sums.count > 0);
    changed.sort((one, other) => other.sums.totalMs - one.sums.totalMs);
    const now = Date.now();
    const statements = changed.slice(0, maxReported).map((statement) => report(statement, now));
    for (const statement of this.#byName.values()) statement.earlierMs *= fading;
    this.#other.lastSeenMs = now;
    const other = this.#other.count > 0 ? this.#other.report() : null;
    this.#other.clear();
    return statements.length === 0 && other === null ? null : { statements, other };
  }

  #find(key: number, { section, client }: ExchangeSummary, sql: string): Statement {
    const shape = digest(sql);
    const name = `${section}\n${client}\n${shape}`;
    const admit = () => this.#admit({ name, section, client, named: null, digest: shape });
    const statement = this.#byName.get(name) ?? admit();
    if (this.#byKey.size >= maxKeys) this.#byKey.clear();
    this.#byKey.set(key, statement);
    return statement;
  }

  #admit(identity: Omit<Statement, 'sums' | 'earlierMs'>): Statement {
    if (this.#byName.size >= maxStatements) this.#makeRoom();
    const sums = this.#spare.pop() ?? new StatementSums();
    const { name } = identity;
    const statement = { ...identity, sums, earlierMs: 0 };
    this.#byName.set(name, statement);
    return statement;
  }

  #makeRoom(): void {
    const weigh = ({ sums, earlierMs }: Statement) => sums.totalMs + earlierMs;
    const all = [...this.#byName.values()].sort((one, other) => weigh(other) - weigh(one));
    for (const { name, sums } of all.slice(maxStatements / 2)) {
      this.#other.merge(sums);
      this.#byName.delete(name);
      sums.clear();
      this.#spare.push(sums);
    }
    this.#byKey.clear();
  }
}

/** Takes a statement's sums. @param now since 1970; the statement ran within the last second */
function report(statement: Statement, now: number): StatementReport {
  const { section, client, named, digest: shape, sums } = statement;
  sums.lastSeenMs = now;
  const reported = { section, client, named, digest: shape, sums: sums.report() };
  statement.earlierMs += sums.totalMs;
  sums.clear();
  return reported;
}

/** The name of MySQL's error, or the code of the failure. */
function errorOf({ outcome, code, errno }: ExchangeSummary): string | null {
  if (outcome === 'ok') return null;
  return code ?? (errno === null ? outcome : errorName(errno));
}

// The descriptions of a section's named statements that come from a server: the values of their ENUM columns, and the columns of their rows.
import { EnumAnswers, fetchEnumAnswers } from '../../../shared/database/enum-values.ts';
import {
  type DescribedStatement,
  describeStatements,
} from '../../../shared/database/named-columns.ts';
import { RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { EnumValues } from '../../../shared/named/scalar.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import type { Log } from '../../../shared/process/log.ts';

/** More than a thousand statements take on a far server. Later the connection ends. */
const readingTimeoutMs = 20_000;

/**
 * Descriptions of named statements. The catalogue reads them on its own sessions: values with every reading, so that it learns a new
 * value within a minute, whatever client has added it; columns once, and again after a statement that may have changed tables.
 */
export class NamedDescriptions {
  readonly #log: Log;
  #statements: readonly NamedStatement[] = [];
  #enums = new EnumAnswers();
  #described: ReadonlyMap<string, DescribedStatement> = new Map();
  /** Grows with each change after which the columns must be read again. */
  #version = 0;
  /** The version of the columns that are known. */
  #readVersion = 0;
  #isWarned = false;
  #state = {};

  constructor(log: Log) {
    this.#log = log;
  }

  /** Replaces the statements. Known values of columns remain known; columns of rows are not known until the next reading. */
  use(statements: readonly NamedStatement[]): void {
    this.#statements = statements;
    this.#described = new Map();
    this.#state = {};
    this.outdate();
  }

  /** Tables may have changed: the next reading reads the columns again. Until then the former answers remain. */
  outdate(): void {
    this.#version += 1;
  }

  /** Whether there are no statements, and so nothing to read. */
  get isEmpty(): boolean {
    return this.#statements.length === 0;
  }

  /** Whether the columns have been read, or the server would not describe them, since they may have changed. */
  get isCurrent(): boolean {
    return this.isEmpty || this.#readVersion === this.#version;
  }

  /** Another object whenever the answers below may be others. */
  get state(): object {
    return this.#state;
  }

  /** The values of an ENUM column; null: they are not known yet, or the column is none. */
  readonly valuesOf: EnumValues = (table, column) => this.#enums.valuesOf(table, column);

  /** The columns of a statement, as the server described them; null: not known yet. */
  find(name: string): DescribedStatement | null {
    return this.#described.get(name) ?? null;
  }

  /** Reads on a clean session, which must be reset afterwards. Never rejects; a connection that is lost, or does not answer in time, is lost afterwards. */
  async read(connection: Connection): Promise<void> {
    const statements = this.#statements;
    const version = this.#version;
    if (this.isEmpty) return;
    const timer = setTimeout(
      () => connection.destroy(new Error('the named statements could not be described in time')),
      readingTimeoutMs,
    );
    try {
      const enums = await fetchEnumAnswers(connection, statements);
      if (statements === this.#statements) {
        this.#enums = enums;
        this.#state = {};
      }
      if (version === this.#readVersion) return;
      const described = await describeStatements(connection, statements, enums.valuesOf);
      if (statements !== this.#statements) return;
      const byName = statements.map(({ name }, at) => [name, described[at]] as const);
      this.#described = new Map(
        byName.flatMap(([name, one]) => (one === undefined ? [] : [[name, one] as const])),
      );
      this.#state = {};
      this.#readVersion = version;
      this.#report(statements, described);
    } catch (error) {
      // An answer that cannot be had is not asked for again and again.
      if (!connection.isLost) this.#readVersion = version;
      // The server's message may quote names; the number says enough.
      const reason = error instanceof RefusedError ? `errno ${error.errno}` : String(error);
      this.#log.debug?.('the named statements could not be described', { reason });
    } finally {
      clearTimeout(timer);
    }
  }

  /** Statements that the server refuses are for the log, once: --check says why. */
  #report(statements: readonly NamedStatement[], described: readonly DescribedStatement[]): void {
    const faulty = statements.filter((_, at) => (described[at]?.faults.length ?? 0) > 0);
    if (faulty.length > 0 && !this.#isWarned) {
      const names = faulty.slice(0, maxListed).map(({ name }) => name);
      this.#log.warn('the server refuses named statements: --check says why', {
        count: faulty.length,
        statements: names.join(', '),
      });
    }
    this.#isWarned = faulty.length > 0;
  }
}

const maxListed = 10;

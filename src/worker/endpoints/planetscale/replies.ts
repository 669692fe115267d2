// The replies to a driver: without a result, or in the format of a statement's.
import type { Analysis } from '../../../shared/sql/analyse.ts';
import type { FormatChoice } from '../../encode/format.ts';
import { chooseDriverJson, createDriverHeads } from '../../encode/formats/driver.ts';
import type { RowLimits } from '../../encode/result-rows.ts';
import type { Reply } from '../endpoint.ts';
import type { DriverSession, DriverSessions } from './session.ts';

/** The replies of one section. */
export class DriverReplies {
  readonly #sessions: DriverSessions;
  readonly #limits: RowLimits;
  readonly #heads = createDriverHeads();

  constructor(sessions: DriverSessions, { maxRows, maxResultBytes }: RowLimits) {
    this.#sessions = sessions;
    this.#limits = { maxRows, maxResultBytes };
  }

  /** A statement that has no result, and has succeeded. @param session as it is from now on */
  done(session: DriverSession): Reply {
    return reply(`{"result":{},"timing":0,"session":${this.#sessions.encode(session)}}`);
  }

  /** A session, and nothing else. */
  opened(session: DriverSession): Reply {
    return reply(`{"session":${this.#sessions.encode(session)}}`);
  }

  /**
   * The format of a statement's reply. Its rows are counted as PlanetScale's sessions have it, with `clientFoundRows`.
   * @param analysis null: it is one of the gateway's own
   * @param session as it is after the statement; asked for when the reply ends
   */
  format(analysis: Analysis | null, session: () => DriverSession): FormatChoice {
    return chooseDriverJson({
      ...this.#limits,
      heads: this.#heads,
      rowModule: null,
      countRows: analysis === null ? affectedRows : chooseFoundRows(analysis),
      session: () => this.#sessions.encode(session()),
    });
  }
}

function reply(json: string): Reply {
  return { ok: true, kind: 'reply', json };
}

/** A server's counts of a write: how many rows it has changed, and in words what else was counted. */
export type WriteCounts = { readonly affectedRows: number | bigint; readonly info: string };

/** The number of rows found. */
export type FoundRows = (counts: WriteCounts) => number | bigint;

/**
 * How the rows that a statement has found are counted: those that an UPDATE has matched, and for INSERT … ON DUPLICATE KEY UPDATE
 * also a row that is set to what it was, as 1 (MySQL Reference Manual, mysql_affected_rows()). For every other statement the rows
 * affected count, also for an INSERT IGNORE with ON DUPLICATE KEY UPDATE: the server does not report more.
 */
export function chooseFoundRows({ readings: [{ facts }] }: Analysis): FoundRows {
  if (!facts.beginsWithVerb) return affectedRows;
  if (facts.verb === 'UPDATE' || facts.verb === 'WITH') return matchedRows;
  return facts.verb === 'INSERT' && !facts.ignoresErrors ? insertedOrMet : affectedRows;
}

const affectedRows: FoundRows = (counts) => counts.affectedRows;

/**
 * `Rows matched: 2  Changed: 1  Warnings: 0`, in the server's language. MariaDB has `Inserted: 1` before the warnings for a table with
 * system versioning.
 */
const matchedRows: FoundRows = (counts) => readNumbers(counts.info)[0] ?? counts.affectedRows;

/**
 * `Records: 3  Duplicates: 1  Warnings: 0`, which is missing for a single row: a row that was inserted counts 1 as affected, one that was
 * changed 2, and as a duplicate too; one that was found and stays what it was counts as a record alone. With MariaDB's system versioning,
 * a row that was changed counts 3 as affected, and CLIENT_FOUND_ROWS reports that.
 */
const insertedOrMet: FoundRows = (counts) => {
  const affected = BigInt(counts.affectedRows);
  const [records, duplicates] = readNumbers(counts.info);
  if (records === undefined || duplicates === undefined)
    return affected === 0n ? 1 : counts.affectedRows;
  const found = records + duplicates;
  return found > affected ? found : affected;
};

function readNumbers(info: string): readonly bigint[] {
  return (info.match(/\d+/g) ?? []).map(BigInt);
}

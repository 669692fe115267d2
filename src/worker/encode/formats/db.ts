// DBSlayer's reply, which /db gives: MySQL's results as one JSON document.

import { typeName } from '../../../shared/mysql/column-types.ts';
import { type Column, columnName, type OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, ServerFacts, SharedResults } from '../../execution/execution.ts';
import type { ServerFailure } from '../../failure/failure.ts';
import type { CellRules } from '../columns.ts';
import { Format, type FormatChoice, type FormatEvents, type FormatOptions } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { ResultHeads } from '../result-rows.ts';
import { planRow } from '../rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';

/** The settings of a reply. */
export type DbReplyOptions = FormatOptions & {
  /** `"SERVER":"…"` with the section's name. */
  readonly serverKey: Buffer;
};

/** The rules for cells on /db. @param exactAsStrings whether exact numbers become JSON strings */
export function dbCells(exactAsStrings: boolean): CellRules {
  const numbersAsStrings = exactAsStrings ? 'all' : 'none';
  return { numbersAsStrings, yearIsNumber: false, jsonIsValue: false };
}

/** Creates the heads of results on /db. @param exactAsStrings as for `dbCells` */
export function createDbHeads(exactAsStrings: boolean): ResultHeads {
  const rules = dbCells(exactAsStrings);
  return new ResultHeads((columns) => {
    const names = columns.map((column) => JSON.stringify(columnName(column)));
    const types = columns.map(({ type }) => `"${typeName(type)}"`);
    const json = `{"HEADER":[${names.join(',')}],"TYPES":[${types.join(',')}],"ROWS":[`;
    return { bytes: Buffer.from(json), plan: planRow(columns, rules) };
  });
}

/** Keys after SERVER, with their values as JSON. */
export type Trailer = readonly (readonly [key: string, json: string])[];

/** A request's wishes beside its results. */
export type DbExtras = {
  /** Returns the keys after a success. `facts` is null unless one of them needs the server. */
  readonly describe: (facts: ServerFacts | null) => Trailer;
  readonly rollbackOnError: boolean;
};

/** The status is 200 even for errors of MySQL: DBSlayer's clients hide the message otherwise. */
const head = createReplyHead(200, jsonType);

/** @param extras null: the request asks for nothing beside the results */
export function chooseDbFormat(options: DbReplyOptions, extras: DbExtras | null): FormatChoice {
  return { head, create: (out, events) => new DbReply(out, events, options, extras) };
}

/** Writes one /db document. */
class DbReply extends Format<DbReplyOptions> {
  readonly #extras: DbExtras | null;
  #isArray = false;
  #begun = false;
  #inRows = false;
  /** The beginning of the current result, to take it back on an error. */
  #mark = 0;
  /** Complete results so far. */
  #resultCount = 0;
  #anyTruncated = false;

  constructor(
    out: ReplyWriter,
    events: FormatEvents,
    options: DbReplyOptions,
    extras: DbExtras | null,
  ) {
    super(out, events, options);
    this.#extras = extras;
  }

  protected get isOneResult(): boolean {
    return !this.#isArray;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#beginResult(more);
    this.results.begin(this.options.heads.find(columns));
    this.#inRows = true;
  }

  endOfRows(): void {
    writeAscii(this.out, this.results.isCut ? '],"TRUNCATED":true}' : ']}');
    this.#anyTruncated ||= this.results.isCut;
    this.#inRows = false;
    this.#resultCount += 1;
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#beginResult(more);
    const { affectedRows, insertId } = ok;
    writeAscii(
      this.out,
      `{"SUCCESS":true,"AFFECTED_ROWS":${affectedRows},"INSERT_ID":${insertId}}`,
    );
    this.#resultCount += 1;
  }

  override restart(): boolean {
    if (!super.restart()) return false;
    this.#startOver();
    this.#inRows = false;
    this.#resultCount = 0;
    this.#anyTruncated = false;
    return true;
  }

  override adopt(held: SharedResults): void {
    super.adopt(held);
    this.#begun = true;
    this.#anyTruncated = held.isTruncated;
    this.#resultCount = 1;
  }

  finish({ failure, facts }: Answer): boolean {
    const { out } = this;
    if (failure !== null) this.#dropRows();
    if (this.#isArray) writeAscii(out, ']');
    if (failure !== null) this.#writeFailure(failure);
    else if (this.#resultCount > 0) this.#writeMember(this.options.serverKey);
    if (this.#anyTruncated) this.#writeKey('TRUNCATED', 'true');
    if (this.#extras !== null) this.#writeExtras(this.#extras, failure, facts);
    writeAscii(out, this.#begun ? '}' : '{}');
    out.end();
    return true;
  }

  /** Removes an incomplete result set, unless some of it has left. */
  #dropRows(): void {
    const out = this.out;
    if (this.#inRows && out.committed) writeAscii(out, ']}');
    else if (this.#inRows) out.rollback(this.#mark);
    this.#inRows = false;
    if (!out.committed && this.#resultCount === 0) this.#startOver();
  }

  /** The first statement failed: there is no RESULT. */
  #startOver(): void {
    this.out.rollback(0);
    this.#begun = false;
    this.#isArray = false;
  }

  #writeFailure({ error, hint, outcome, place }: ServerFailure): void {
    this.#writeKey('MYSQL_ERRNO', String(error.errno));
    this.#writeKey('MYSQL_ERROR', JSON.stringify(error.message));
    if (hint !== undefined) this.#writeKey('HINT', JSON.stringify(hint));
    const statement = place?.statement ?? 0;
    if (statement > 0 || outcome === 'unknown') this.#writeKey('OUTCOME', `"${outcome}"`);
    if (statement > 0) this.#writeKey('STATEMENT', String(statement));
    this.#writeMember(this.options.serverKey);
  }

  #writeExtras(
    { describe, rollbackOnError }: DbExtras,
    failure: ServerFailure | null,
    facts: ServerFacts | null,
  ): void {
    if (failure === null) {
      for (const [key, json] of describe(facts)) this.#writeKey(key, json);
    } else if (rollbackOnError) {
      this.#writeKey('ROLLBACK_ON_ERROR', 'true');
      this.#writeKey('ROLLBACK_ON_ERROR_SUCCESS', String(failure.outcome === 'rolled_back'));
    }
  }

  #writeKey(key: string, json: string): void {
    this.#writeMember(Buffer.from(`"${key}":${json}`));
  }

  /** Writes a key with its value, of any length. */
  #writeMember(member: Buffer): void {
    writeAscii(this.out, this.#begun ? ',' : '{');
    this.#begun = true;
    writeBytes(this.out, member);
  }

  #beginResult(more: boolean): void {
    this.#mark = this.out.length;
    if (!this.#begun) {
      this.#begun = true;
      this.#isArray = more;
      writeAscii(this.out, more ? '{"RESULT":[' : '{"RESULT":');
    } else {
      if (!this.#isArray) throw new Error('a further result came unannounced');
      writeAscii(this.out, ',');
    }
  }
}

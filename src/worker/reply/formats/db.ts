// DBSlayer's reply (contract of /db): results as MySQL sends them become one JSON document.
// Must not know HTTP statuses, the pool or how bytes leave.
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import {
  type Column,
  type OkPacket,
  type ServerError,
  serverStatus,
} from '../../../shared/mysql/packets.ts';
import type { HeldResults, RunSink } from '../../execute/statement-run.ts';
import type { ResultHeads } from '../result-heads.ts';
import { ResultRows, type RowLimits, type RowsEvents } from '../result-rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';

/** What a reply depends on. */
export type DbReplyOptions = RowLimits & {
  /** `"SERVER":"…"` with the section's name. */
  readonly serverKey: Buffer;
  readonly heads: ResultHeads;
  readonly exactAsStrings: boolean;
};

/** Whose reply it is. */
export interface DbReplyEvents extends RowsEvents {
  /** Which statement of the request failed, from what each result before the failure was. */
  failedStatement(results: readonly ResultNote[]): number;
}

/** What is remembered of a complete result. */
export type ResultNote = {
  readonly isResultSet: boolean;
  /** Whether a transaction was open after it. */
  readonly inTransaction: boolean;
};

/** Keys after SERVER: name and value, strings and numbers, or text that is JSON already. */
export type Trailer = readonly (readonly [key: string, json: string])[];

/** How a document ends. */
export type DbEnding = {
  readonly trailer: Trailer;
  /** After an error: whether all that was done before it has been undone. */
  readonly rolledBack: boolean;
};

/** Writes one /db document. `finish` ends it; without it nothing whole ever leaves. */
export class DbReply implements RunSink {
  /** The complete results so far, in order. */
  readonly results: ResultNote[] = [];
  readonly #out: ReplyWriter;
  readonly #options: DbReplyOptions;
  readonly #events: DbReplyEvents;
  readonly #rows: ResultRows;
  #isArray = false;
  #begun = false;
  #inRows = false;
  /** Where the current result began, to take it back on an error. */
  #mark = 0;
  #anyTruncated = false;
  #error: ServerError | null = null;

  constructor(out: ReplyWriter, options: DbReplyOptions, events: DbReplyEvents) {
    this.#out = out;
    this.#events = events;
    this.#options = options;
    this.#rows = new ResultRows(out, options, options.heads.rowModule, events);
  }

  get rowCount(): number {
    return this.#rows.count;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#beginResult(more);
    const { json, plan } = this.#options.heads.find(columns, this.#options.exactAsStrings);
    writeBytes(this.#out, json);
    this.#rows.begin(plan);
    this.#inRows = true;
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#rows.writeOne(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    this.#rows.writeAhead(ahead);
  }

  endOfRows(status: number): void {
    writeAscii(this.#out, this.#rows.isCut ? '],"TRUNCATED":true}' : ']}');
    this.#anyTruncated ||= this.#rows.isCut;
    this.#inRows = false;
    this.#note(true, status);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#beginResult(more);
    const { affectedRows, insertId } = ok;
    writeAscii(
      this.#out,
      `{"SUCCESS":true,"AFFECTED_ROWS":${affectedRows},"INSERT_ID":${insertId}}`,
    );
    this.#note(false, ok.status);
  }

  error(error: ServerError): void {
    this.#error = error;
    if (!this.#inRows) return;
    if (this.#out.committed) writeAscii(this.#out, ']}');
    else this.#out.rollback(this.#mark);
    this.#inRows = false;
  }

  get totalBytes(): number {
    return this.#out.totalBytes;
  }

  get heldRoom(): number {
    return this.#out.heldRoom;
  }

  restart(): boolean {
    if (this.#out.committed) return false;
    this.#startOver();
    this.#inRows = false;
    this.results.length = 0;
    this.#rows.count = 0;
    this.#anyTruncated = false;
    return true;
  }

  held(): HeldResults | null {
    const out = this.#out;
    if (out.committed || this.#isArray || this.#rows.isTooLarge) return null;
    const bytes = out.bytes.subarray(0, out.length);
    return { bytes, rows: this.rowCount, isTruncated: this.#anyTruncated };
  }

  adopt({ bytes, rows, isTruncated }: HeldResults): void {
    writeBytes(this.#out, bytes);
    this.#begun = true;
    this.#rows.count = rows;
    this.#anyTruncated = isTruncated;
    this.results.push({ isResultSet: true, inTransaction: false });
  }

  /** Ends the document and the reply. */
  finish({ trailer, rolledBack }: DbEnding): void {
    const out = this.#out;
    const error = this.#error;
    if (error !== null && !out.committed && this.results.length === 0) this.#startOver();
    if (this.#isArray) writeAscii(out, ']');
    if (error !== null) this.#writeError(error, rolledBack);
    else if (this.results.length > 0) this.#writeMember(this.#options.serverKey);
    if (this.#anyTruncated) this.#writeKey('TRUNCATED', 'true');
    for (const [key, json] of trailer) this.#writeKey(key, json);
    writeAscii(out, this.#begun ? '}' : '{}');
    out.end();
  }

  /** The first statement failed: there is no RESULT. */
  #startOver(): void {
    this.#out.rollback(0);
    this.#begun = false;
    this.#isArray = false;
  }

  #writeError({ errno, message }: ServerError, rolledBack: boolean): void {
    this.#writeKey('MYSQL_ERRNO', String(errno));
    this.#writeKey('MYSQL_ERROR', JSON.stringify(message));
    const failed = this.#events.failedStatement(this.results);
    if (failed > 0) {
      this.#writeKey('OUTCOME', rolledBack ? '"rolled_back"' : '"partial"');
      this.#writeKey('STATEMENT', String(failed));
    }
    this.#writeMember(this.#options.serverKey);
  }

  #writeKey(key: string, json: string): void {
    this.#writeMember(Buffer.from(`"${key}":${json}`));
  }

  /** Writes a key with its value, which may be of any length. */
  #writeMember(member: Buffer): void {
    writeAscii(this.#out, this.#begun ? ',' : '{');
    this.#begun = true;
    writeBytes(this.#out, member);
  }

  #note(isResultSet: boolean, status: number): void {
    this.results.push({ isResultSet, inTransaction: (status & serverStatus.inTransaction) !== 0 });
  }

  #beginResult(more: boolean): void {
    this.#mark = this.#out.length;
    if (!this.#begun) {
      this.#begun = true;
      this.#isArray = more;
      writeAscii(this.#out, more ? '{"RESULT":[' : '{"RESULT":');
    } else {
      if (!this.#isArray) throw new Error('a further result came unannounced');
      writeAscii(this.#out, ',');
    }
  }
}

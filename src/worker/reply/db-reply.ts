// DBSlayer's reply (contract of /db): results as MySQL sends them become one JSON document.
// Must not know HTTP statuses, the pool or how bytes leave.
import {
  type Column,
  decodeText,
  type OkPacket,
  type ServerError,
  serverStatus,
} from '../mysql/packets.ts';
import type { ResultSink } from '../mysql/query.ts';
import { planRow, type RowPlan, writeRow } from './cells.ts';
import { typeName } from './column-kinds.ts';
import { writeAscii, writeString } from './text.ts';
import type { ReplyWriter } from './writer.ts';

/** What one reply depends on. `maxRows` and `maxResultBytes` of 0 set no limit. */
export type DbReplyOptions = {
  readonly section: string;
  readonly exactAsStrings: boolean;
  readonly maxRows: number;
  readonly maxResultBytes: number;
  /** Which statement of the request failed, from what each result before the failure was. */
  readonly failedStatement: (results: readonly ResultNote[]) => number;
  /** Called once when the body outgrows `maxResultBytes`. */
  readonly onTooLarge: () => void;
};

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

const noColumns: RowPlan = { kinds: new Uint8Array(), encodings: [] };

/** Writes one /db document. `finish` ends it; without it nothing whole ever leaves. */
export class DbReply implements ResultSink {
  rowCount = 0;
  /** The complete results so far, in order. */
  readonly results: ResultNote[] = [];
  readonly #out: ReplyWriter;
  readonly #options: DbReplyOptions;
  #isArray = false;
  #begun = false;
  #plan = noColumns;
  #inRows = false;
  #rowsInResult = 0;
  /** Where the current result began, to take it back on an error. */
  #mark = 0;
  #truncated = false;
  #anyTruncated = false;
  #error: ServerError | null = null;
  #tooLarge = false;

  constructor(out: ReplyWriter, options: DbReplyOptions) {
    this.#out = out;
    this.#options = options;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#beginResult(more);
    this.#plan = planRow(columns, this.#options.exactAsStrings);
    writeAscii(this.#out, '{"HEADER":[');
    columns.forEach((column, index) => {
      if (index > 0) writeAscii(this.#out, ',');
      writeString(this.#out, decodeText(column.name));
    });
    writeAscii(this.#out, '],"TYPES":[');
    columns.forEach((column, index) => {
      writeAscii(this.#out, `${index > 0 ? ',' : ''}"${typeName(column.type)}"`);
    });
    writeAscii(this.#out, '],"ROWS":[');
    this.#inRows = true;
    this.#rowsInResult = 0;
    this.#truncated = false;
  }

  row(bytes: Buffer, start: number, end: number): void {
    const { maxRows, maxResultBytes } = this.#options;
    if (this.#tooLarge) return;
    if (maxRows > 0 && this.#rowsInResult >= maxRows) {
      this.#truncated = true;
      return;
    }
    const out = this.#out;
    if (this.#rowsInResult > 0) {
      out.reserve(1);
      out.bytes[out.length++] = 0x2c;
    }
    this.#rowsInResult += 1;
    this.rowCount += 1;
    writeRow(out, this.#plan, bytes, start, end);
    if (maxResultBytes > 0 && out.totalBytes > maxResultBytes) {
      this.#tooLarge = true;
      this.#options.onTooLarge();
    }
  }

  endOfRows(status: number): void {
    writeAscii(this.#out, this.#truncated ? '],"TRUNCATED":true}' : ']}');
    this.#anyTruncated ||= this.#truncated;
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

  /** Ends the document and the reply. */
  finish({ trailer, rolledBack }: DbEnding): void {
    if (this.#error !== null && !this.#out.committed && this.results.length === 0) {
      this.#out.rollback(0);
      this.#begun = false;
      this.#isArray = false;
    }
    if (this.#isArray) writeAscii(this.#out, ']');
    for (const [key, json] of [...this.#resultTrailer(rolledBack), ...trailer])
      this.#writeKey(key, json);
    writeAscii(this.#out, this.#begun ? '}' : '{}');
    this.#out.end();
  }

  #resultTrailer(rolledBack: boolean): Trailer {
    const { section } = this.#options;
    const error = this.#error;
    if (error === null) {
      if (this.results.length === 0) return [];
      return [
        ['SERVER', JSON.stringify(section)],
        ...(this.#anyTruncated ? [['TRUNCATED', 'true'] as const] : []),
      ];
    }
    const failed = this.#options.failedStatement(this.results);
    return [
      ['MYSQL_ERRNO', String(error.errno)],
      ['MYSQL_ERROR', JSON.stringify(error.message)],
      ...(failed > 0
        ? ([
            ['OUTCOME', rolledBack ? '"rolled_back"' : '"partial"'],
            ['STATEMENT', String(failed)],
          ] as const)
        : []),
      ['SERVER', JSON.stringify(section)],
    ];
  }

  #note(isResultSet: boolean, status: number): void {
    this.results.push({ isResultSet, inTransaction: (status & serverStatus.inTransaction) !== 0 });
  }

  #writeKey(key: string, json: string): void {
    writeAscii(this.#out, `${this.#begun ? ',' : '{'}"${key}":`);
    this.#begun = true;
    const text = Buffer.from(json);
    for (let from = 0; from < text.length; from += 4096) {
      const piece = text.subarray(from, from + 4096);
      this.#out.reserve(piece.length);
      piece.copy(this.#out.bytes, this.#out.length);
      this.#out.length += piece.length;
    }
  }

  #beginResult(more: boolean): void {
    this.#mark = this.#out.length;
    if (!this.#begun) {
      this.#begun = true;
      this.#isArray = more;
      writeAscii(this.#out, more ? '{"RESULT":[' : '{"RESULT":');
    } else {
      writeAscii(this.#out, ',');
    }
  }
}

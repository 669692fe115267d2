// The JSON of /v1/query: columns described, rows as arrays or objects, and what is known of the whole at the end.
// Must not know HTTP, the pool or how bytes leave.
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, SharedResults } from '../../execution/execution.ts';
import type { AnyFailure, Failure } from '../../failure/failure.ts';
import type { Format, FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, jsonType, varyByAccept } from '../head.ts';
import { type RowBounds, replayReply, sealReply } from '../kept-reply.ts';
import { ResultHeads } from '../result-heads.ts';
import { ResultRows, type RowLimits } from '../result-rows.ts';
import type { RowModule } from '../row-module.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { problemHead, problemJson } from './problem.ts';
import { planV1Head, type V1Layout } from './v1-cells.ts';

/** What the replies to one request depend on. */
export type V1ReplyOptions = RowLimits & {
  /** The section's name as JSON, in ASCII. */
  readonly section: string;
  /** Of letters, digits and marks that JSON takes as they stand. */
  readonly requestId: string;
  readonly heads: ResultHeads;
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
  /**
   * For each statement, whether columns of the same name are renamed if they could not stand in an object. Otherwise the reply is
   * refused, which must not happen to a statement that was executed. Missing: for none.
   */
  readonly renames?: readonly boolean[];
  /** Whether all is undone that the statement did. */
  readonly isDryRun: boolean;
  /** Where its rows stand, so that it can be kept without them; null: it is not kept. */
  readonly rowBounds: RowBounds | null;
};

const head = createReplyHead(200, jsonType, varyByAccept);

/** As in the format of /db: a row's growth, a column's, and what frames them. A column's description is the longest. */
const mostGrowth = 6;
const rowBrackets = 8;
const columnFrame = 160;
const frameBytes = 128;

/** The most that a result's head can be. */
export function mostHeadBytes(columns: readonly Column[]): number {
  let bytes = frameBytes;
  for (const { name } of columns) bytes += name.length * mostGrowth + columnFrame;
  return bytes;
}

/** The most that rows of so many bytes, as MySQL sends them, can be; of rows with keys it is one row. */
export function mostRowBytes(bytes: number, { keyBytes }: ResultRows): number {
  return mostGrowth * bytes + keyBytes + rowBrackets;
}

/** Creates what stands before the rows of a layout: to be kept for as long as possible. */
export function createV1Heads(layout: V1Layout): ResultHeads {
  const frame = (columns: string) => `{"columns":${columns},"rows":[`;
  return new ResultHeads((columns) => planV1Head(columns, layout, frame));
}

/** One statement's reply. */
export function chooseV1Json(options: V1ReplyOptions): FormatChoice {
  return { head, create: (out, events) => new V1Json(out, options, events) };
}

/** Makes the whole reply a problem; nothing of it may have left. Of one statement no number is told. */
export function writeProblem(
  out: ReplyWriter,
  { requestId }: Pick<V1ReplyOptions, 'requestId'>,
  { place: _place, ...failure }: AnyFailure,
): void {
  out.head = problemHead(failure);
  writeBytes(out, Buffer.from(problemJson(failure, requestId)));
}

/** Several results, of a CALL, stand in `results`; one stands alone. */
export class V1Json implements Format {
  readonly #out: ReplyWriter;
  readonly #options: V1ReplyOptions;
  readonly #rows: ResultRows;
  readonly #events: FormatEvents;
  readonly #renames: boolean;
  /** There can be no reply: what comes is forgotten. */
  #isRefused = false;
  /** Its end is written. */
  #isComplete = false;
  #isSeveral = false;
  /** Complete results so far. */
  #resultCount = 0;
  #countBefore = 0;

  /** @param statement its number in the request */
  constructor(out: ReplyWriter, options: V1ReplyOptions, events: FormatEvents, statement = 0) {
    this.#out = out;
    this.#options = options;
    this.#events = events;
    this.#renames = options.renames?.[statement] === true;
    this.#rows = new ResultRows(out, options, options.rowModule, events);
  }

  get rowCount(): number {
    return this.#rows.count;
  }

  columns(columns: readonly Column[], more: boolean): void {
    const found = this.#options.heads.find(columns);
    if (found.clash !== undefined && !this.#renames) this.#refuse(found.clash.failure);
    if (this.#isRefused) return;
    const { bytes, plan } = found.clash?.renamed ?? found;
    this.#beginResult(more);
    writeBytes(this.#out, bytes);
    this.#rows.begin(plan);
    this.#options.rowBounds?.note(this.#out.length);
    this.#countBefore = this.#rows.count;
  }

  tooWide(): void {
    this.#rows.skipNext();
    this.#events.replyTooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    if (!this.#isRefused) this.#rows.writeOne(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    if (!this.#isRefused) this.#rows.writeAhead(ahead);
  }

  endOfRows(): void {
    if (this.#isRefused) return;
    const { count, isCut } = this.#rows;
    this.#options.rowBounds?.note(this.#out.length);
    writeAscii(this.#out, `],"row_count":${count - this.#countBefore},"truncated":${isCut}`);
    this.#endResult();
  }

  ok({ affectedRows, insertId, warnings }: OkPacket, more: boolean): void {
    if (this.#isRefused) return;
    this.#beginResult(more);
    const id = insertId === 0 ? 'null' : `"${insertId}"`;
    writeAscii(
      this.#out,
      `{"affected_rows":${affectedRows},"insert_id":${id},"warnings":${warnings}`,
    );
    this.#endResult();
  }

  get totalBytes(): number {
    return this.#out.totalBytes;
  }

  get hasLeft(): boolean {
    return this.#out.committed;
  }

  fitsColumns(columns: readonly Column[]): boolean {
    return this.#out.heldRoom >= mostHeadBytes(columns);
  }

  fitsRows(bytes: number): boolean {
    return this.#out.heldRoom >= mostRowBytes(bytes, this.#rows);
  }

  restart(): boolean {
    if (this.#out.committed) return false;
    this.#out.rollback(0);
    this.#options.rowBounds?.clear();
    this.#isComplete = false;
    this.#isRefused = false;
    this.#isSeveral = false;
    this.#resultCount = 0;
    this.#rows.restart();
    return true;
  }

  held(): SharedResults | null {
    const out = this.#out;
    if (out.committed || this.#isRefused || this.#isSeveral || this.#rows.isTooLarge) return null;
    const bytes = out.bytes.subarray(0, out.length);
    return { bytes, rows: this.rowCount, isTruncated: this.#rows.isCut };
  }

  adopt({ bytes, rows }: SharedResults): void {
    writeBytes(this.#out, bytes);
    this.#rows.count = rows;
    this.#resultCount = 1;
  }

  /** A failure is a reply of its own; where rows have left it cannot be told any more. */
  finish({ failure }: Answer): boolean {
    const out = this.#out;
    if (failure !== null) {
      if (!this.restart()) return false;
      writeProblem(out, this.#options, failure);
    } else {
      this.#complete();
    }
    out.end();
    return true;
  }

  seal(mostBytes: number): Buffer {
    this.#complete();
    return sealReply(this.#out, this.#options.rowBounds, mostBytes);
  }

  replay(kept: Buffer, isRepeated: boolean): void {
    this.restart();
    replayReply(this.#out, kept, isRepeated);
    this.#isComplete = true;
  }

  #complete(): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    const { section, requestId, isDryRun } = this.#options;
    const undone = isDryRun ? '"rolled_back":true,' : '';
    const before = this.#isSeveral ? '],' : ',';
    writeAscii(this.#out, `${before}${undone}"request_id":"${requestId}","section":${section}}`);
  }

  #refuse(failure: Failure): void {
    this.#isRefused = true;
    this.#events.replyRefused(failure);
  }

  #beginResult(more: boolean): void {
    if (this.#resultCount === 0 && more) {
      this.#isSeveral = true;
      writeAscii(this.#out, '{"results":[');
    } else if (this.#resultCount > 0) {
      if (!this.#isSeveral) throw new Error('a further result came unannounced');
      writeAscii(this.#out, ',');
    }
  }

  #endResult(): void {
    if (this.#isSeveral) writeAscii(this.#out, '}');
    this.#resultCount += 1;
  }
}

// The JSON of /v1/batch: what a query's reply says of a result, once for each statement, and what became of all of them.
// Must not know HTTP, the pool or how bytes leave.
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer } from '../../execution/execution.ts';
import type { ServerFailure } from '../../failure/failure.ts';
import type { Format, FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { replayReply, sealReply } from '../kept-reply.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { problemHead, problemJson } from './problem.ts';
import { V1Json, type V1ReplyOptions } from './v1-json.ts';

const head = createReplyHead(200, jsonType);

/** The reply to a batch. Nothing of it leaves before its end. */
export function chooseV1Batch(options: V1ReplyOptions): FormatChoice {
  return { head, create: (out, events) => new V1Batch(out, options, events) };
}

class V1Batch implements Format {
  readonly #out: ReplyWriter;
  readonly #options: V1ReplyOptions;
  readonly #events: FormatEvents;
  /** The statement whose results come; null: none has been begun, or the next one begins. */
  #current: V1Json | null = null;
  #rowsBefore = 0;
  /** Those that are complete. */
  #statements = 0;
  #isSeveral = false;
  #hasResults = false;
  /** Its end is written. */
  #isComplete = false;
  #retries = 0;

  constructor(out: ReplyWriter, options: V1ReplyOptions, events: FormatEvents) {
    this.#out = out;
    this.#options = options;
    this.#events = events;
  }

  get rowCount(): number {
    return this.#rowsBefore + (this.#current?.rowCount ?? 0);
  }

  get totalBytes(): number {
    return this.#out.totalBytes;
  }

  get hasLeft(): boolean {
    return this.#out.committed;
  }

  /** @param more the statement is a CALL: it ends with its OK */
  columns(columns: readonly Column[], more: boolean): void {
    this.#isSeveral = more;
    this.#statement().columns(columns, more);
  }

  tooWide(): void {
    this.#statement().tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#current?.row(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    this.#current?.rows(ahead);
  }

  endOfRows(): void {
    this.#current?.endOfRows();
    if (!this.#isSeveral) this.#endStatement();
  }

  ok(ok: OkPacket): void {
    this.#statement().ok(ok, false);
    this.#endStatement();
  }

  fitsColumns(): boolean {
    return true;
  }

  fitsRows(): boolean {
    return true;
  }

  /** The batch is begun anew. */
  restart(): boolean {
    this.#retries += 1;
    this.#out.rollback(0);
    this.#options.rowBounds?.clear();
    this.#isComplete = false;
    this.#current = null;
    this.#rowsBefore = 0;
    this.#isSeveral = false;
    this.#hasResults = false;
    this.#statements = 0;
    return true;
  }

  /** A batch is run for its own request alone. */
  held(): null {
    return null;
  }

  adopt(): void {
    throw new Error('a batch has an answer of its own');
  }

  finish({ failure }: Answer): boolean {
    if (failure === null) {
      this.#complete();
    } else {
      this.restart();
      this.#writeProblem(failure);
    }
    this.#out.end();
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
    const { section, requestId } = this.#options;
    writeAscii(this.#out, `],"request_id":"${requestId}","section":${section}}`);
  }

  #writeProblem(failure: ServerFailure): void {
    this.#out.head = problemHead(failure);
    writeBytes(this.#out, Buffer.from(problemJson(failure, this.#options.requestId)));
  }

  #statement(): V1Json {
    if (this.#current === null) {
      // It is seen by nobody unless it becomes true.
      const before = `{"committed":true,"retries":${this.#retries},"results":[`;
      writeAscii(this.#out, this.#hasResults ? ',' : before);
      this.#hasResults = true;
      this.#current = new V1Json(this.#out, this.#options, this.#events, this.#statements);
    }
    return this.#current;
  }

  #endStatement(): void {
    writeAscii(this.#out, this.#isSeveral ? ']}' : '}');
    this.#rowsBefore += this.#current?.rowCount ?? 0;
    this.#current = null;
    this.#isSeveral = false;
    this.#statements += 1;
  }
}

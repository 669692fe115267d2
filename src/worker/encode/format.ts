// A format turns a request's results, and how its statements ended, into one reply.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column, OkPacket } from '../../shared/mysql/packets.ts';
import type { Answer, RunSink, SharedResults } from '../execution/execution.ts';

import type { Failure } from '../failure/failure.ts';
import type { ReplyHead } from './head.ts';
import { type ResultHeads, ResultRows, type RowEvents, type RowLimits } from './result-rows.ts';
import type { RowModule } from './row-module.ts';
import { maxExpansion, writeBytes } from './text.ts';
import type { ReplyWriter } from './writer.ts';

/** The request that a reply belongs to. */
export interface FormatEvents extends RowEvents {
  /** A result has more columns than the limit allows. Unless the run is stopped, the reply has this result without rows, and says that it is cut. */
  replyTooWide(): void;
  /** The reply takes no more rows: if the statement only reads, the rest of it is not needed. */
  replyIsComplete(): void;
  /** These results cannot become a reply. The outcome in the failure is not final: only the request knows it. */
  replyRefused(failure: Failure): void;
}

/** The format that a request has chosen. */
export type FormatChoice = {
  /** The head of the reply, unless the format replaces it. */
  readonly head: ReplyHead;
  /** Whether nothing may leave before the end is known. */
  readonly isWhole?: boolean;
  readonly create: (out: ReplyWriter, events: FormatEvents) => Format;
};

/** The settings of every format of results. */
export type FormatOptions = RowLimits & {
  readonly heads: ResultHeads;
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
};

/** Brackets around a row. */
const rowFrameBytes = 8;
/** The rest of a reply, beside the head and the rows of its result. Session and failure do not count. */
const frameBytes = 128;

/** One reply in progress. Before `finish` nothing leaves that a client could take for a whole reply. */
export abstract class Format<Options extends FormatOptions = FormatOptions> implements RunSink {
  protected readonly out: ReplyWriter;
  protected readonly events: FormatEvents;
  protected readonly options: Options;
  protected readonly results: ResultRows;
  /** The reply was refused: the format ignores what still comes. */
  protected isRefused = false;

  constructor(out: ReplyWriter, events: FormatEvents, options: Options) {
    this.out = out;
    this.events = events;
    this.options = options;
    this.results = new ResultRows(out, options, options.rowModule, events);
  }

  abstract columns(columns: readonly Column[], more: boolean): void;
  abstract endOfRows(status: number, warnings: number): void;
  abstract ok(ok: OkPacket, more: boolean): void;
  /** Ends the reply, with MySQL's own error if there was one. Returns false if the connection must be reset instead. */
  abstract finish(answer: Answer): boolean;
  /** Whether what is written is one complete result, which another reply may adopt. */
  protected abstract readonly isOneResult: boolean;

  /** Ends a reply that has begun to leave with a failure of the gateway. Returns false if the connection must be reset instead. */
  finishFailed(_failure: Failure): boolean {
    return false;
  }

  /** Whether further rows would change nothing in the reply. */
  get isComplete(): boolean {
    return false;
  }

  /** Rows of all results. */
  get rowCount(): number {
    return this.results.count;
  }

  get totalBytes(): number {
    return this.out.totalBytes;
  }

  get hasLeft(): boolean {
    return this.out.committed;
  }

  tooWide(): void {
    this.results.skipNext();
    this.events.replyTooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    if (!this.isRefused) this.results.writeOne(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    if (!this.isRefused) this.results.writeAhead(ahead);
  }

  fitsColumns(columns: readonly Column[]): boolean {
    return this.out.heldRoom >= this.options.heads.find(columns).bytes.length + frameBytes;
  }

  fitsRows(bytes: number): boolean {
    return this.out.heldRoom >= maxExpansion * bytes + this.results.keyBytes + rowFrameBytes;
  }

  restart(): boolean {
    if (this.out.committed) return false;
    this.out.rollback(0);
    this.isRefused = false;
    this.results.restart();
    return true;
  }

  held(): SharedResults | null {
    const { count, isCut, isTooLarge } = this.results;
    if (this.out.committed || this.isRefused || isTooLarge || !this.isOneResult) return null;
    return { bytes: this.out.written, rows: count, isTruncated: isCut };
  }

  adopt({ bytes, rows, isTruncated }: SharedResults): void {
    writeBytes(this.out, bytes);
    this.results.count = rows;
    this.results.isCut = isTruncated;
  }

  protected refuse(failure: Failure): void {
    this.isRefused = true;
    this.events.replyRefused(failure);
  }
}

// The results of one text of a batch, each given to the statement that it belongs to.
// Must not know connections, nor what is made of results.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import { type Column, type OkPacket, serverStatus } from '../../shared/mysql/packets.ts';
import type { ResultSink } from '../../shared/mysql/query.ts';
import type { Piece } from './batch-texts.ts';
import type { BatchFault } from './execution.ts';
import type { LeaseSink } from './session-lease.ts';
import type { Batch } from './work.ts';

/** Who wants to know how far a text has come. */
export interface TextEvents {
  readonly sink: ResultSink & { readonly totalBytes: number };
  /** A statement of it has succeeded. */
  pieceDone(piece: Piece): void;
  /** The results are more than is held. */
  resultsTooLarge(): void;
}

/** Results of a batch wait in memory for its end; so much of them, as they are sent or as MySQL sends a row. */
const mostHeldBytes = 16 * 1024 * 1024;

/** Takes the results of one text. */
export class TextResults implements LeaseSink {
  /** Whether a statement of the client's has; MySQL calls START TRANSACTION and SAVEPOINT changes too. */
  hasChangedState = false;
  /** The first thing that speaks against the transaction, or against what was expected of a statement, and of which. */
  fault: { readonly fault: BatchFault; readonly step: number } | null = null;
  readonly #batch: Batch;
  readonly #pieces: readonly Piece[];
  readonly #events: TextEvents;
  #at = 0;
  #rows = 0;
  #isFull = false;

  constructor(batch: Batch, pieces: readonly Piece[], events: TextEvents) {
    this.#batch = batch;
    this.#pieces = pieces;
    this.#events = events;
  }

  /** What an error that comes now belongs to. */
  get current(): Piece {
    return this.#pieces[Math.min(this.#at, this.#pieces.length - 1)] as Piece;
  }

  columns(columns: readonly Column[]): void {
    this.#rows = 0;
    if (this.current.role === 'step') this.#events.sink.columns(columns, this.#isCall);
  }

  tooWide(): void {
    if (this.current.role === 'step') this.#events.sink.tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#rows += 1;
    if (this.#hasRoom(end - start)) this.#events.sink.row(bytes, start, end);
  }

  /** One by one where they are counted. */
  rows(ahead: PacketsAhead): void {
    if (this.#expect !== null || !this.#hasRoom(0)) return;
    this.#events.sink.rows?.(ahead);
  }

  endOfRows(status: number): void {
    if (this.current.role === 'step') {
      this.#events.sink.endOfRows(status);
      this.#look(status, 'row_count', this.#rows);
    }
    if (!this.#isCall) this.#done();
  }

  ok(ok: OkPacket): void {
    if (this.current.role === 'step') {
      this.#events.sink.ok(ok, false);
      this.#look(ok.status, 'affected_rows', ok.affectedRows);
    }
    if (this.current.role === 'reply' && ok.affectedRows !== 1) {
      this.fault ??= { fault: { kind: 'ended' }, step: this.current.step ?? 0 };
    }
    this.#done();
  }

  get #expect() {
    const { step } = this.current;
    return step === null ? null : (this.#batch.steps[step]?.expect ?? null);
  }

  get #isCall(): boolean {
    const { role, step } = this.current;
    return role === 'step' && this.#batch.steps[step ?? 0]?.isCall === true;
  }

  #hasRoom(bytes: number): boolean {
    if (this.#isFull) return false;
    this.#isFull = this.#events.sink.totalBytes + bytes > mostHeldBytes;
    if (this.#isFull) this.#events.resultsTooLarge();
    return !this.#isFull;
  }

  #look(status: number, of: 'row_count' | 'affected_rows', count: number | bigint): void {
    if ((status & serverStatus.stateChanged) !== 0) this.hasChangedState = true;
    const step = this.current.step ?? 0;
    const isOpen = (status & serverStatus.inTransaction) !== 0;
    if (this.#batch.isAtomic && !isOpen) this.fault ??= { fault: { kind: 'ended' }, step };
    const expect = this.#expect;
    // A CALL's rows are followed by its count of changed ones, which is what may be expected of it.
    if (expect === null || this.fault !== null || (this.#isCall && of === 'row_count')) return;
    // A write with RETURNING tells by its rows how many it has touched: it has no count of its own.
    const isCounted = expect.of === of || expect.code === 'TOO_MANY_ROWS';
    if (isCounted && count >= expect.least && count <= expect.most) return;
    this.fault = { fault: { kind: 'unmet', expect, found: `${of} ${count}` }, step };
  }

  #done(): void {
    const piece = this.current;
    this.#at += 1;
    this.#events.pieceDone(piece);
  }
}

// Assigns the results of one text of a batch to its statements, and checks what is expected of each.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import { type Column, type OkPacket, serverStatus } from '../../shared/mysql/packets.ts';
import { refuseRows } from '../../shared/mysql/query.ts';
import type { Piece } from './batch-texts.ts';
import type { BatchFault, RunSink, ServerWarning } from './execution.ts';
import type { LeaseSink } from './session-lease.ts';
import { WarningRows } from './warnings.ts';
import type { Batch } from './work.ts';

/** The reports of a text while it runs. */
export interface TextEvents {
  readonly sink: RunSink;
  readonly warnings: StepWarnings;
  /** A statement has succeeded. */
  pieceDone(piece: Piece): void;
  /** The results exceed the memory that a batch may use. */
  resultsTooLarge(): void;
}

/** The warnings of the last statement that was run, which may have been in the text before. */
export class StepWarnings {
  count = 0;
  rows = new WarningRows();

  /** Without warnings of its own, a statement may leave those of an earlier one in the session. */
  get own(): readonly ServerWarning[] {
    return this.count > 0 ? this.rows.list : [];
  }
}

/** Results of a batch wait in memory for its end. The limit counts the reply and the next row, as MySQL sends it. */
const maxResultBytes = 16 * 1024 * 1024;

/** Takes the results of one text. */
export class TextResults implements LeaseSink {
  /** Whether a statement of the client has changed the session; MySQL's flags count START TRANSACTION and SAVEPOINT too. */
  hasChangedState = false;
  /** The first fault, and the number of its statement. */
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

  /** The statement to which an error that comes now belongs. */
  get current(): Piece {
    return this.#pieces[Math.min(this.#at, this.#pieces.length - 1)] as Piece;
  }

  columns(columns: readonly Column[]): void {
    this.#rows = 0;
    if (this.current.role === 'warnings') this.#beginWarnings(columns);
    else if (this.current.role === 'step') this.#events.sink.columns(columns, this.#isCall);
    else if (this.current.role !== 'engine proof') refuseRows();
  }

  tooWide(): void {
    if (this.current.role === 'step') this.#events.sink.tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    if (this.current.role === 'warnings') {
      this.#events.warnings.rows.row(bytes, start, end);
      return;
    }
    if (this.current.role === 'engine proof') return;
    this.#rows += 1;
    if (this.#hasRoom(end - start)) this.#events.sink.row(bytes, start, end);
  }

  /** If rows are counted, or are no reply, they are taken one by one. */
  rows(ahead: PacketsAhead): void {
    if (this.current.role !== 'step') return;
    if (this.#expect !== null || !this.#hasRoom(0)) return;
    this.#events.sink.rows?.(ahead);
  }

  endOfRows(status: number, warnings: number): void {
    if (this.current.role === 'step') {
      this.#events.warnings.count = warnings;
      this.#events.sink.endOfRows(status, warnings);
      this.#checkStatus(status, 'row_count', this.#rows);
    } else if (this.current.role === 'warnings') {
      this.#events.sink.listWarnings?.(this.#events.warnings.own);
    }
    if (!this.#isCall) this.#done();
  }

  ok(ok: OkPacket): void {
    if (this.current.role === 'step') {
      this.#events.warnings.count = ok.warnings;
      this.#events.sink.ok(ok, false);
      this.#checkStatus(ok.status, 'affected_rows', ok.affectedRows);
    }
    if (this.current.role === 'reply' && ok.affectedRows !== 1) {
      this.fault ??= { fault: { kind: 'ended' }, step: this.current.step ?? 0 };
    }
    this.#done();
  }

  #beginWarnings(columns: readonly Column[]): void {
    const rows = new WarningRows();
    rows.columns(columns);
    this.#events.warnings.rows = rows;
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
    this.#isFull = this.#events.sink.totalBytes + bytes > maxResultBytes;
    if (this.#isFull) this.#events.resultsTooLarge();
    return !this.#isFull;
  }

  #checkStatus(status: number, of: 'row_count' | 'affected_rows', count: number | bigint): void {
    if ((status & serverStatus.stateChanged) !== 0) this.hasChangedState = true;
    const step = this.current.step ?? 0;
    const isOpen = (status & serverStatus.inTransaction) !== 0;
    if (this.#batch.isAtomic && !isOpen) this.fault ??= { fault: { kind: 'ended' }, step };
    const expect = this.#expect;
    // After a CALL's rows comes its count of changed rows: an expectation applies to that count.
    if (expect === null || this.fault !== null || (this.#isCall && of === 'row_count')) return;
    // A write with RETURNING has no count of its own: its rows are counted.
    const isCounted = expect.of === of || expect.code === 'TOO_MANY_ROWS';
    if (isCounted && count >= expect.min && count <= expect.max) return;
    this.fault = { fault: { kind: 'unmet', expect, found: { of, count } }, step };
  }

  #done(): void {
    const piece = this.current;
    this.#at += 1;
    this.#events.pieceDone(piece);
  }
}

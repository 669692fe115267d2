// The rows of one reply: written one by one or many at once, counted, cut where a limit says so. Hot.
// Must not know the document around them, nor sockets.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import { slackBytes } from './buffers.ts';
import type { FormatEvents } from './format.ts';
import type { RowModule } from './row-module.ts';
import { type RowPlan, writeRow } from './rows.ts';
import type { ReplyWriter } from './writer.ts';

/** How much is written; 0 sets no limit. */
export type RowLimits = { readonly maxRows: number; readonly maxResultBytes: number };

const comma = 0x2c;
const everyRow = 0xffffffff;
const noColumns: RowPlan = { kinds: new Uint8Array(), conversions: [], isForeign: false };

/** Writes rows, separated by commas. */
export class ResultRows {
  /** Of all results. */
  count = 0;
  /** Whether rows of the current result were left out. */
  isCut = false;
  /** The body has outgrown `maxResultBytes`: nothing more is written. */
  isTooLarge = false;
  readonly #out: ReplyWriter;
  readonly #limits: RowLimits;
  readonly #module: RowModule | null;
  readonly #events: FormatEvents;
  #plan = noColumns;
  /** Of the current result. */
  #written = 0;

  /** @param module null: rows are written one by one */
  constructor(out: ReplyWriter, limits: RowLimits, module: RowModule | null, events: FormatEvents) {
    this.#out = out;
    this.#limits = limits;
    this.#module = module;
    this.#events = events;
  }

  /** A result's rows follow. */
  begin(plan: RowPlan): void {
    this.#plan = plan;
    this.#written = 0;
    this.isCut = false;
  }

  /** Writes a row packet's payload. */
  writeOne(bytes: Buffer, start: number, end: number): void {
    if (this.isTooLarge) return;
    if (this.#rowsLeft() <= 0) {
      this.isCut = true;
      return;
    }
    const out = this.#out;
    if (this.#written > 0) {
      out.reserve(1);
      out.bytes[out.length++] = comma;
    }
    writeRow(out, this.#plan, bytes, start, end);
    this.#add(1);
  }

  /** Writes what it can of the packets ahead, up to where the writer's buffer is full, and moves past them. */
  writeAhead(ahead: PacketsAhead): void {
    const module = this.#module;
    const mostRows = this.#rowsLeft();
    if (module === null || this.#plan.isForeign || this.isTooLarge || mostRows <= 0) return;
    const out = this.#out;
    out.reserve(slackBytes);
    const stopLength = Math.min(out.fullLength, out.length + this.#bytesLeft());
    const needsComma = this.#written > 0;
    this.#add(module.write(out, { ahead, plan: this.#plan, needsComma, mostRows, stopLength }));
  }

  #rowsLeft(): number {
    const { maxRows } = this.#limits;
    return maxRows > 0 ? maxRows - this.#written : everyRow;
  }

  #bytesLeft(): number {
    const { maxResultBytes } = this.#limits;
    return maxResultBytes > 0 ? maxResultBytes - this.#out.totalBytes : Number.POSITIVE_INFINITY;
  }

  #add(rows: number): void {
    this.#written += rows;
    this.count += rows;
    if (rows === 0 || this.#bytesLeft() >= 0) return;
    this.isTooLarge = true;
    this.#events.replyTooLarge();
  }
}

// The rows of one reply: written one by one or many at once, framed, counted, cut where a limit says so. Hot.
// Must not know the document around them, nor sockets.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import { slackBytes } from './buffers.ts';
import { writeRecord } from './csv-rows.ts';
import { writeDriverRow } from './driver-rows.ts';
import type { FormatEvents } from './format.ts';
import type { RowModule } from './row-module.ts';
import { type RowPlan, writeRow } from './rows.ts';
import type { ReplyWriter } from './writer.ts';

/** How much is written; 0 sets no limit. */
export type RowLimits = {
  readonly maxRows: number;
  readonly maxResultBytes: number;
  /** Whether rows beyond `maxResultBytes` are left out, as those beyond `maxRows` are: the statement was executed. Missing: it is stopped. */
  readonly cutsLongWrites?: boolean;
};

/**
 * How rows are told apart: JSON with commas between it, JSON of which each has a line, or records of CSV; `driver`: objects
 * with commas between them, of lengths and base64.
 */
export type RowFraming = 'list' | 'lines' | 'csv' | 'driver';

const comma = 0x2c;
const lineFeed = 0x0a;
const everyRow = 0xffffffff;
const noColumns: RowPlan = {
  kinds: new Uint8Array(),
  conversions: [],
  isForeign: false,
  keys: null,
};

/** Writes rows. */
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
  readonly #framing: RowFraming;
  #plan = noColumns;
  /** Of the current result. */
  #written = 0;
  /** Whether all rows of the current result are left out. */
  #isSkipping = false;
  #isNextSkipped = false;

  /** @param module null: rows are written one by one */
  constructor(
    out: ReplyWriter,
    limits: RowLimits,
    module: RowModule | null,
    events: FormatEvents,
    framing: RowFraming = 'list',
  ) {
    this.#out = out;
    this.#limits = limits;
    this.#module = module;
    this.#events = events;
    this.#framing = framing;
  }

  /** A result's rows follow. */
  begin(plan: RowPlan): void {
    this.#plan = plan;
    this.#written = 0;
    this.#isSkipping = this.#isNextSkipped;
    this.#isNextSkipped = false;
    this.isCut = this.#isSkipping;
  }

  /** All begins again. */
  restart(): void {
    this.count = 0;
    this.#isNextSkipped = false;
  }

  /** The rows of the result that begins next are left out. */
  skipNext(): void {
    this.#isNextSkipped = true;
  }

  /** What the keys of each row take. */
  get keyBytes(): number {
    let bytes = 0;
    for (const key of this.#plan.keys ?? []) bytes += key.length;
    return bytes;
  }

  /** Writes a row packet's payload. */
  writeOne(bytes: Buffer, start: number, end: number): void {
    if (this.isTooLarge) {
      this.isCut = true;
      return;
    }
    if (this.#rowsLeft() <= 0) {
      this.isCut = true;
      return;
    }
    const out = this.#out;
    const framing = this.#framing;
    if (framing === 'csv') {
      writeRecord(out, this.#plan, bytes, start, end);
    } else {
      if (framing !== 'lines' && this.#written > 0) this.#writeByte(comma);
      if (framing === 'driver') writeDriverRow(out, this.#plan, bytes, start, end);
      else writeRow(out, this.#plan, bytes, start, end);
      if (framing === 'lines') this.#writeByte(lineFeed);
    }
    this.#add(1);
  }

  /** Writes what it can of the packets ahead, up to where the writer's buffer is full, and moves past them. */
  writeAhead(ahead: PacketsAhead): void {
    const module = this.#module;
    const mostRows = this.#rowsLeft();
    const { isForeign, keys } = this.#plan;
    if (module === null || isForeign || keys !== null || this.isTooLarge || mostRows <= 0) return;
    const out = this.#out;
    out.reserve(slackBytes);
    const stopLength = Math.min(out.fullLength, out.length + this.#bytesLeft());
    const framing = this.#framing;
    const needsComma = framing === 'list' && this.#written > 0;
    const order = { ahead, plan: this.#plan, framing, needsComma, mostRows, stopLength };
    this.#add(module.write(out, order));
  }

  #writeByte(byte: number): void {
    const out = this.#out;
    out.reserve(1);
    out.bytes[out.length++] = byte;
  }

  #rowsLeft(): number {
    const { maxRows } = this.#limits;
    if (this.#isSkipping) return 0;
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
    if (this.#limits.cutsLongWrites !== true) this.#events.replyTooLarge();
  }
}

// The rows of one reply: how they are framed, counted, and cut at a limit, written one by one or many at once. Hot.
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column } from '../../shared/mysql/packets.ts';
import type { Failure } from '../failure/failure.ts';
import { writeRecord } from './csv-rows.ts';
import { writeDriverRow } from './driver-rows.ts';
import type { RowFraming, RowModule } from './row-module.ts';
import { type RowPlan, writeRow } from './rows.ts';
import { writeBytes } from './text.ts';
import { type ReplyWriter, slackBytes } from './writer.ts';

/** One kind of result set. */
export type ResultHead = {
  /** The bytes before the first row. */
  readonly bytes: Buffer;
  readonly plan: RowPlan;
  /** Set if rows of these columns are impossible: why, and the head to use instead if the statement was executed in any case. */
  readonly clash?: { readonly failure: Failure; readonly renamed: ResultHead };
};

/** Remembers the heads of one format for as long as their columns are remembered. Equal columns must be the same array. */
export class ResultHeads {
  readonly #create: (columns: readonly Column[]) => ResultHead;
  readonly #heads = new WeakMap<readonly Column[], ResultHead>();

  constructor(create: (columns: readonly Column[]) => ResultHead) {
    this.#create = create;
  }

  find(columns: readonly Column[]): ResultHead {
    let head = this.#heads.get(columns);
    if (head === undefined) {
      head = this.#create(columns);
      this.#heads.set(columns, head);
    }
    return head;
  }
}

/** Limits of a reply; 0 sets no limit. */
export type RowLimits = {
  readonly maxRows: number;
  readonly maxResultBytes: number;
  /** Whether rows beyond `maxResultBytes` are left out, as those beyond `maxRows` are, since the statement was executed. Otherwise the run is stopped. */
  readonly cutsLongWrites?: boolean;
};

/** The reply that rows belong to. */
export interface RowEvents {
  /** The body has outgrown `maxResultBytes`; called once. */
  replyTooLarge(): void;
}

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
  /** Rows of all results. */
  count = 0;
  /** Whether rows of the current result were left out. */
  isCut = false;
  /** The body has outgrown `maxResultBytes`: nothing more is written. */
  isTooLarge = false;
  readonly #out: ReplyWriter;
  readonly #limits: RowLimits;
  readonly #module: RowModule | null;
  readonly #events: RowEvents;
  #framing: RowFraming = 'list';
  #plan = noColumns;
  /** Rows of the current result. */
  #written = 0;
  /** Whether all rows of the current result are left out. */
  #isSkipping = false;
  #isNextSkipped = false;

  /** @param module null: rows are written one by one */
  constructor(out: ReplyWriter, limits: RowLimits, module: RowModule | null, events: RowEvents) {
    this.#out = out;
    this.#limits = limits;
    this.#module = module;
    this.#events = events;
  }

  /** Writes a result's head; its rows follow. */
  begin({ bytes, plan }: ResultHead, framing: RowFraming = 'list'): void {
    writeBytes(this.#out, bytes);
    this.#plan = plan;
    this.#framing = framing;
    this.#written = 0;
    this.#isSkipping = this.#isNextSkipped;
    this.#isNextSkipped = false;
    this.isCut = this.#isSkipping;
  }

  /** Forgets all results. */
  restart(): void {
    this.count = 0;
    this.isCut = false;
    this.isTooLarge = false;
    this.#isNextSkipped = false;
  }

  /** Leaves out the rows of the next result. */
  skipNext(): void {
    this.#isNextSkipped = true;
  }

  /** The length of the keys in each row. */
  get keyBytes(): number {
    return this.#plan.keys?.bytes ?? 0;
  }

  /** Writes a row packet's payload. */
  writeOne(bytes: Buffer, start: number, end: number): void {
    if (this.isTooLarge || this.#rowsLeft() <= 0) {
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

  /** Writes as many of the packets ahead as possible until the writer's buffer is full, and moves past them. */
  writeAhead(ahead: PacketsAhead): void {
    const module = this.#module;
    const maxRows = this.#rowsLeft();
    if (module === null || this.#plan.isForeign || this.isTooLarge || maxRows <= 0) return;
    const out = this.#out;
    out.reserve(slackBytes);
    const stopLength = Math.min(out.fullLength, out.length + this.#bytesLeft());
    const framing = this.#framing;
    const needsComma = framing === 'list' && this.#written > 0;
    const order = { ahead, plan: this.#plan, framing, needsComma, maxRows, stopLength };
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

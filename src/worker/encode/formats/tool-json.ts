// The JSON for agents: columns once, rows as arrays, within limits of rows and bytes; long cells are shortened, and bytes appear as their size.
import { errorName } from '../../../shared/mysql/error-names.ts';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import { columnName } from '../../../shared/mysql/packets.ts';
import type { Answer } from '../../execution/execution.ts';
import { type AnyFailure, refusal } from '../../failure/failure.ts';
import {
  cellLength,
  lengthBytes,
  nullMarker,
  rowLengthFault,
  toUtf8,
  writeCell,
} from '../cells.ts';
import { type CellKind, type CellRules, type Conversion, cellKinds } from '../columns.ts';
import { Format, type FormatChoice, type FormatEvents, type FormatOptions } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { type ResultHead, ResultHeads } from '../result-rows.ts';
import { planRow, type RowPlan } from '../rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { isRetryable, problemHead } from './problem.ts';

/** The settings of the reply to one call of a tool. */
export type ToolReplyOptions = {
  readonly heads: ResultHeads;
  readonly maxRows: number;
  readonly maxBytes: number;
  /** Whether the client may see MySQL's own words. */
  readonly showsServerText: boolean;
};

/** Longer cells are shortened. In bytes of UTF-8. */
const maxCellBytes = 1024;
/** Characters of other sets take at most four bytes. */
const maxForeignBytes = 4 * maxCellBytes;
/** So many bytes of rows beyond the limit are read and dropped before the read is stopped: a KILL costs more than they do. */
const toleratedBytes = 64 * 1024;

const cellRules: CellRules = { numbersAsStrings: 'wide', yearIsNumber: true, jsonIsValue: true };
const head = createReplyHead(200, jsonType);

/** Creates the heads of results. Keep them as long as possible: they remember the columns that were described. */
export function createToolHeads(): ResultHeads {
  return new ResultHeads((columns) => ({
    bytes: Buffer.from(`{"columns":${JSON.stringify(columns.map(columnName))},"rows":[`),
    plan: planRow(columns, cellRules),
  }));
}

/** One statement's reply. */
export function chooseToolJson(options: ToolReplyOptions): FormatChoice {
  return { head, create: (out, events) => new ToolJson(out, events, options) };
}

/** A failure as the object of a call that failed. @param showsServerText whether MySQL's own words may be in it */
export function toolErrorJson(failure: AnyFailure, showsServerText: boolean): string {
  const { message, outcome } = failure;
  const error = failure.code === null && failure.shownCode === undefined ? failure.error : null;
  const isHidden = error !== null && !showsServerText;
  return JSON.stringify({
    error: {
      code: failure.shownCode ?? failure.code ?? errorName(failure.error.errno),
      errno: error?.errno,
      sqlstate: error?.sqlState,
      message: isHidden ? undefined : message,
      hint: failure.code === null ? failure.hint : undefined,
      outcome,
      retryable: isRetryable(failure),
    },
  });
}

/** Makes the object of a call that failed the whole reply; nothing of it may have left. @param showsServerText whether MySQL's own words may be in it */
export function writeToolError(
  out: ReplyWriter,
  failure: AnyFailure,
  showsServerText: boolean,
): void {
  out.head = problemHead(failure);
  writeBytes(out, Buffer.from(toolErrorJson(failure, showsServerText)));
}

const noHead: ResultHead = {
  bytes: Buffer.alloc(0),
  plan: { kinds: new Uint8Array(), conversions: [], isForeign: false, keys: null },
};

type Phase = 'empty' | 'in rows' | 'after rows';

/** Writes one result. */
class ToolJson extends Format<ToolReplyOptions & FormatOptions> {
  #phase: Phase = 'empty';
  #plan: RowPlan = noHead.plan;
  #isComplete = false;
  #shortened = 0;
  #warnings = 0;
  #skippedBytes = 0;
  #hasReportedEnough = false;

  constructor(out: ReplyWriter, events: FormatEvents, options: ToolReplyOptions) {
    super(out, events, { ...options, rowModule: null, maxResultBytes: 0 });
  }

  /** The reply depends on limits that other requests do not have. */
  protected get isOneResult(): boolean {
    return false;
  }

  override get isComplete(): boolean {
    return this.#isComplete;
  }

  columns(columns: readonly Column[]): void {
    if (this.#phase !== 'empty') throw new Error('a call of a tool has one result');
    const { bytes, plan } = this.options.heads.find(columns);
    if (bytes.length > this.options.maxBytes) this.refuse(tooManyColumns);
    if (this.isRefused) return;
    writeBytes(this.out, bytes);
    this.#plan = plan;
    this.#phase = 'in rows';
  }

  override row(bytes: Buffer, start: number, end: number): void {
    if (this.isRefused) return;
    if (!this.#isComplete) this.#isComplete = !this.#add(bytes, start, end);
    if (this.#isComplete) this.#skip(end - start);
  }

  /** Returns false if there is no room for the row. */
  #add(bytes: Buffer, start: number, end: number): boolean {
    const { out, results } = this;
    const { maxRows, maxBytes } = this.options;
    if (results.count >= maxRows) return false;
    const mark = out.length;
    const shortened = this.#shortened;
    this.#writeRow(bytes, start, end, maxBytes);
    if (out.length <= maxBytes) {
      results.count += 1;
      return true;
    }
    out.rollback(mark);
    this.#shortened = shortened;
    return false;
  }

  #skip(bytes: number): void {
    this.#skippedBytes += bytes;
    if (this.#hasReportedEnough || this.#skippedBytes < toleratedBytes) return;
    this.#hasReportedEnough = true;
    this.events.replyIsComplete();
  }

  /** Writes a row, or its beginning if that is too long already. */
  #writeRow(source: Buffer, start: number, end: number, maxBytes: number): void {
    const { out } = this;
    const { kinds, conversions } = this.#plan;
    let position = start;
    writeAscii(out, this.results.count > 0 ? ',[' : '[');
    for (let index = 0; index < kinds.length; index += 1) {
      if (index > 0) writeAscii(out, ',');
      if (source[position] === nullMarker) {
        writeAscii(out, 'null');
        position += 1;
        continue;
      }
      const cellStart = position + lengthBytes(source, position);
      position = cellStart + cellLength(source, position);
      if (position > end) throw new RangeError(rowLengthFault);
      const kind = kinds[index] as CellKind;
      this.#writeCell(kind, conversions[index] ?? null, source.subarray(cellStart, position));
      if (out.length > maxBytes) return;
    }
    if (position !== end) throw new RangeError(rowLengthFault);
    writeAscii(out, ']');
  }

  #writeCell(kind: CellKind, conversion: Conversion | null, cell: Buffer): void {
    const { out } = this;
    const isText = conversion === null || 'charset' in conversion;
    if (kind === cellKinds.binary) {
      writeAscii(out, `"<${cell.length} bytes>"`);
    } else if (cell.length > maxCellBytes && isText) {
      this.#shortened += 1;
      const begin = cell.subarray(0, maxForeignBytes);
      const text = conversion === null ? begin : toUtf8(begin, conversion);
      const shown = `${beginOf(text)}… (${cell.length} bytes)`;
      writeBytes(out, Buffer.from(JSON.stringify(shown)));
    } else {
      writeCell(out, kind, conversion, cell, 0, cell.length);
    }
  }

  endOfRows(_status: number, warnings: number): void {
    this.#warnings = warnings;
    if (!this.isRefused) this.#endRows();
  }

  #endRows(): void {
    const { count } = this.results;
    writeAscii(this.out, `],"row_count":${count},"truncated":${this.#isComplete}`);
    if (this.#shortened > 0) writeAscii(this.out, `,"shortened_cells":${this.#shortened}`);
    if (this.#warnings > 0) writeAscii(this.out, `,"warnings":${this.#warnings}`);
    writeAscii(this.out, '}');
    this.#phase = 'after rows';
  }

  ok({ affectedRows, insertId, warnings }: OkPacket): void {
    if (this.isRefused) return;
    const id = insertId === 0 ? 'null' : `"${insertId}"`;
    const text = `{"affected_rows":${affectedRows},"insert_id":${id},"warnings":${warnings}}`;
    writeAscii(this.out, text);
    this.#phase = 'after rows';
  }

  override restart(): boolean {
    if (!super.restart()) return false;
    this.#phase = 'empty';
    this.#isComplete = false;
    this.#shortened = 0;
    this.#warnings = 0;
    this.#skippedBytes = 0;
    this.#hasReportedEnough = false;
    return true;
  }

  finish({ failure }: Answer): boolean {
    const { out } = this;
    if (failure !== null) {
      this.restart();
      writeToolError(out, failure, this.options.showsServerText);
    } else if (this.#phase === 'in rows') {
      this.#endRows();
    }
    out.end();
    return true;
  }
}

const tooManyColumns = refusal(
  'TOO_MANY_COLUMNS',
  'The names of the columns alone are longer than the result may be: select fewer columns, or ask for more bytes with max_bytes, up to the limit of the client and section.',
);

/** The beginning of a text, cut between characters. */
function beginOf(text: Buffer): string {
  let end = Math.min(maxCellBytes, text.length);
  while (end > 0 && end < text.length && ((text[end] as number) & 0xc0) === 0x80) end -= 1;
  return text.toString('utf8', 0, end);
}

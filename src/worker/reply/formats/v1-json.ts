// The JSON of /v1/query: columns described, rows as arrays or objects, and what is known of the whole at the end.
// Must not know HTTP, the pool or how bytes leave.
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer } from '../../execute/outcome.ts';
import type { HeldResults } from '../../execute/run-events.ts';
import { describeColumn } from '../column-types.ts';
import type { Format, FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { ResultHeads } from '../result-heads.ts';
import { ResultRows, type RowLimits } from '../result-rows.ts';
import type { RowModule } from '../row-module.ts';
import { planRow } from '../rows.ts';
import { writeAscii, writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { describeRefused, problemHead, problemJson } from './problem.ts';
import { type V1Layout, v1Cells } from './v1-cells.ts';

/** What the replies to one request depend on. */
export type V1ReplyOptions = RowLimits & {
  readonly section: string;
  readonly requestId: string;
  readonly heads: ResultHeads;
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
  /** Whether it was to run READ ONLY, and whether it does nothing but read: what an error of MySQL's means. */
  readonly isReadOnly: boolean;
  readonly isRead: boolean;
};

const head = createReplyHead(200, jsonType);

/** As in the format of /db: a row's growth, a column's, and what frames them. A column's description is the longest. */
const mostGrowth = 6;
const rowBrackets = 8;
const columnFrame = 160;
const frameBytes = 128;

/** Creates what stands before the rows of a layout: to be kept for as long as possible. */
export function createV1Heads(layout: V1Layout): ResultHeads {
  const rules = v1Cells(layout);
  return new ResultHeads((columns) => {
    const plan = planRow(columns, rules);
    const described = columns.map((column) => JSON.stringify(describeColumn(column)));
    return { bytes: Buffer.from(`{"columns":[${described.join(',')}],"rows":[`), plan };
  });
}

/** One statement's reply. */
export function chooseV1Json(options: V1ReplyOptions): FormatChoice {
  return { head, create: (out, events) => new V1Json(out, options, events) };
}

/** Several results, of a CALL, stand in `results`; one stands alone. */
class V1Json implements Format {
  readonly #out: ReplyWriter;
  readonly #options: V1ReplyOptions;
  readonly #rows: ResultRows;
  #isSeveral = false;
  /** Complete results so far. */
  #resultCount = 0;
  #countBefore = 0;

  constructor(out: ReplyWriter, options: V1ReplyOptions, events: FormatEvents) {
    this.#out = out;
    this.#options = options;
    this.#rows = new ResultRows(out, options, options.rowModule, events);
  }

  get rowCount(): number {
    return this.#rows.count;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#beginResult(more);
    const { bytes, plan } = this.#options.heads.find(columns);
    writeBytes(this.#out, bytes);
    this.#rows.begin(plan);
    this.#countBefore = this.#rows.count;
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#rows.writeOne(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    this.#rows.writeAhead(ahead);
  }

  endOfRows(): void {
    const { count, isCut } = this.#rows;
    writeAscii(this.#out, `],"row_count":${count - this.#countBefore},"truncated":${isCut}`);
    this.#endResult();
  }

  ok({ affectedRows, insertId, warnings }: OkPacket, more: boolean): void {
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
    let bytes = frameBytes;
    for (const { name } of columns) bytes += name.length * mostGrowth + columnFrame;
    return this.#out.heldRoom >= bytes;
  }

  fitsRows(bytes: number): boolean {
    return this.#out.heldRoom >= mostGrowth * bytes + rowBrackets;
  }

  restart(): boolean {
    if (this.#out.committed) return false;
    this.#out.rollback(0);
    this.#isSeveral = false;
    this.#resultCount = 0;
    this.#rows.count = 0;
    return true;
  }

  held(): HeldResults | null {
    const out = this.#out;
    if (out.committed || this.#isSeveral || this.#rows.isTooLarge) return null;
    const bytes = out.bytes.subarray(0, out.length);
    return { bytes, rows: this.rowCount, isTruncated: this.#rows.isCut };
  }

  adopt({ bytes, rows }: HeldResults): void {
    writeBytes(this.#out, bytes);
    this.#rows.count = rows;
    this.#resultCount = 1;
  }

  /** A failure is a reply of its own; where rows have left it cannot be told any more. */
  finish({ failure }: Answer): boolean {
    const out = this.#out;
    const { section, requestId, isReadOnly, isRead } = this.#options;
    if (failure !== null) {
      if (!this.restart()) return false;
      const outcome = failure.mayBePartial && !isReadOnly ? 'partial' : 'failed';
      const problem = describeRefused(failure.error, { outcome, isReadOnly, isRead });
      out.head = problemHead(problem);
      writeBytes(out, Buffer.from(problemJson(problem, requestId)));
    } else {
      const about = `"request_id":${JSON.stringify(requestId)},"section":${JSON.stringify(section)}}`;
      writeBytes(out, Buffer.from(this.#isSeveral ? `],${about}` : `,${about}`));
    }
    out.end();
    return true;
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

// Rows of /v1/query in lines of JSON or in records of CSV: how they begin, and how they end well or with a failure.
// Must not know HTTP, the pool or how bytes leave.
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import { type Column, columnName, type OkPacket } from '../../../shared/mysql/packets.ts';
import type { Answer, SharedResults } from '../../execution/execution.ts';
import type { AnyFailure, Failure } from '../../failure/failure.ts';
import { csvRecord } from '../csv-rows.ts';
import type { Format, FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, csvType, ndjsonType, type ReplyHead, varyByAccept } from '../head.ts';
import { ResultHeads } from '../result-heads.ts';
import { ResultRows, type RowFraming } from '../result-rows.ts';
import { planRow } from '../rows.ts';
import { writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { problemJson } from './problem.ts';
import { csvCells, planV1Head, type V1Layout } from './v1-cells.ts';
import {
  chooseV1Json,
  mostHeadBytes,
  mostRowBytes,
  type V1ReplyOptions,
  writeProblem,
} from './v1-json.ts';

/** What the two differ in. */
type StreamKind = {
  readonly head: ReplyHead;
  readonly framing: RowFraming;
  /** What stands behind the rows. */
  readonly end: (rows: number, isCut: boolean) => string;
  /** What ends a reply that has begun; null: nothing does that could not be taken for a good end. */
  readonly failed: ((failure: AnyFailure, requestId: string) => string) | null;
};

const ndjson: StreamKind = {
  head: createReplyHead(200, ndjsonType, varyByAccept),
  framing: 'lines',
  end: (rows, isCut) => `{"end":{"row_count":${rows},"truncated":${isCut}}}\n`,
  failed: (failure, requestId) => `{"error":${problemJson(failure, requestId)}}\n`,
};

const csv: StreamKind = {
  head: createReplyHead(200, csvType, varyByAccept),
  framing: 'csv',
  end: () => '',
  failed: null,
};

/** What a stream depends on beside what JSON does, which is the reply where there turn out to be no rows. */
export type V1StreamOptions = V1ReplyOptions & { readonly streamHeads: ResultHeads };

/** Creates what stands before the rows of NDJSON: to be kept for as long as possible. */
export function createNdjsonHeads(layout: V1Layout): ResultHeads {
  const frame = (columns: string) => `{"columns":${columns}}\n`;
  return new ResultHeads((columns) => planV1Head(columns, layout, frame));
}

/** Creates what stands before the rows of CSV: to be kept for as long as possible. */
export function createCsvHeads(): ResultHeads {
  return new ResultHeads((columns) => ({
    bytes: csvRecord(columns.map(columnName)),
    plan: planRow(columns, csvCells),
  }));
}

const unannounced = 'a further result came unannounced';

/** One statement's rows as lines of JSON. */
export function chooseNdjson(options: V1StreamOptions): FormatChoice {
  return chooseStream(ndjson, options);
}

/** One statement's rows as records of CSV. */
export function chooseCsv(options: V1StreamOptions): FormatChoice {
  return chooseStream(csv, options);
}

function chooseStream(kind: StreamKind, options: V1StreamOptions): FormatChoice {
  const json = chooseV1Json(options);
  return {
    head: kind.head,
    create: (out, events) =>
      new V1Stream(kind, out, options, events, () => {
        out.head = json.head;
        return json.create(out, events);
      }),
  };
}

/** One result set; what turns out to be none, or to be several, is a reply in JSON. */
class V1Stream implements Format {
  readonly #kind: StreamKind;
  readonly #out: ReplyWriter;
  readonly #options: V1StreamOptions;
  readonly #events: FormatEvents;
  readonly #rows: ResultRows;
  readonly #createJson: () => Format;
  /** Null: there are rows, or nothing is known yet. */
  #json: Format | null = null;
  #hasBegun = false;
  /** There can be no reply: what comes is forgotten. */
  #isRefused = false;
  /** Whether rows were left out. */
  #isCut = false;

  constructor(
    kind: StreamKind,
    out: ReplyWriter,
    options: V1StreamOptions,
    events: FormatEvents,
    createJson: () => Format,
  ) {
    this.#kind = kind;
    this.#out = out;
    this.#options = options;
    this.#events = events;
    this.#createJson = createJson;
    this.#rows = new ResultRows(out, options, options.rowModule, events, kind.framing);
  }

  get rowCount(): number {
    return this.#json?.rowCount ?? this.#rows.count;
  }

  columns(columns: readonly Column[], more: boolean): void {
    if (more && !this.#hasBegun) this.#json ??= this.#createJson();
    if (this.#json !== null) {
      this.#json.columns(columns, more);
      return;
    }
    const found = this.#options.streamHeads.find(columns);
    if (found.clash !== undefined && this.#options.renames?.[0] !== true) {
      this.#isRefused = true;
      this.#events.replyRefused(found.clash.failure);
      return;
    }
    const { bytes, plan } = found.clash?.renamed ?? found;
    if (this.#hasBegun) throw new Error(unannounced);
    this.#hasBegun = true;
    writeBytes(this.#out, bytes);
    this.#rows.begin(plan);
  }

  /** What is not stopped for that is answered in JSON, which can say that rows are missing. */
  tooWide(): void {
    if (this.#hasBegun || this.#isRefused) return;
    this.#json ??= this.#createJson();
    this.#json.tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    if (this.#json !== null) this.#json.row(bytes, start, end);
    else if (!this.#isRefused) this.#rows.writeOne(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    if (this.#json !== null) this.#json.rows?.(ahead);
    else if (!this.#isRefused) this.#rows.writeAhead(ahead);
  }

  endOfRows(status: number): void {
    if (this.#json !== null) this.#json.endOfRows(status);
    else this.#isCut = this.#rows.isCut;
  }

  ok(ok: OkPacket, more: boolean): void {
    if (this.#hasBegun) throw new Error(unannounced);
    if (this.#isRefused) return;
    this.#json ??= this.#createJson();
    this.#json.ok(ok, more);
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
    this.#out.head = this.#kind.head;
    this.#json = null;
    this.#hasBegun = false;
    this.#isRefused = false;
    this.#isCut = false;
    this.#rows.restart();
    return true;
  }

  held(): SharedResults | null {
    const out = this.#out;
    if (out.committed || this.#json !== null || this.#isRefused || this.#rows.isTooLarge) {
      return null;
    }
    const bytes = out.bytes.subarray(0, out.length);
    return { bytes, rows: this.rowCount, isTruncated: this.#isCut };
  }

  adopt({ bytes, rows, isTruncated }: SharedResults): void {
    writeBytes(this.#out, bytes);
    this.#rows.count = rows;
    this.#isCut = isTruncated;
  }

  finish(answer: Answer): boolean {
    if (this.#json !== null) return this.#json.finish(answer);
    const { failure } = answer;
    if (failure === null) {
      this.#end(this.#kind.end(this.#rows.count, this.#isCut));
      return true;
    }
    if (!this.restart()) return this.#endFailed(failure);
    writeProblem(this.#out, this.#options, failure);
    this.#out.end();
    return true;
  }

  finishFailed(failure: Failure): boolean {
    return this.#json === null && this.#endFailed(failure);
  }

  #endFailed(failure: AnyFailure): boolean {
    const { failed } = this.#kind;
    if (failed === null) return false;
    this.#end(failed(failure, this.#options.requestId));
    return true;
  }

  #end(last: string): void {
    writeBytes(this.#out, Buffer.from(last));
    this.#out.end();
  }
}

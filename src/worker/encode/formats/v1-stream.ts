// Rows of /v1/query as lines of JSON or records of CSV, with an end that tells success from failure.
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { AnyFailure, Failure } from '../../failure/failure.ts';
import type { FormatChoice, FormatEvents } from '../format.ts';
import { createReplyHead, csvType, ndjsonType, type ReplyHead, varyByAccept } from '../head.ts';
import type { ResultHeads } from '../result-rows.ts';
import type { RowFraming } from '../row-module.ts';
import { writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { problemJson } from './problem.ts';
import { chooseV1Json, V1Json, type V1ReplyOptions } from './v1-json.ts';

/** The difference between the two formats. */
type StreamKind = {
  readonly head: ReplyHead;
  readonly framing: RowFraming;
  /** The text behind the rows. @param warnings their number and list as members of an object; '' if they are not listed */
  readonly end: (rows: number, isCut: boolean, warnings: string) => string;
  /** The end of a reply that fails after it has begun; null: any end would look like success. */
  readonly failed: ((failure: AnyFailure, requestId: string) => string) | null;
};

const ndjson: StreamKind = {
  head: createReplyHead(200, ndjsonType, varyByAccept),
  framing: 'lines',
  end: (rows, isCut, warnings) => `{"end":{"row_count":${rows},"truncated":${isCut}${warnings}}}\n`,
  failed: (failure, requestId) => `{"error":${problemJson(failure, requestId)}}\n`,
};

const csv: StreamKind = {
  head: createReplyHead(200, csvType, varyByAccept),
  framing: 'csv',
  end: () => '',
  failed: null,
};

/** The settings of a stream, and of the JSON that replaces it if there are no rows. */
export type V1StreamOptions = V1ReplyOptions & { readonly streamHeads: ResultHeads };

/** One statement's rows as lines of JSON. */
export function chooseNdjson(options: V1StreamOptions): FormatChoice {
  return chooseStream(ndjson, options);
}

/** One statement's rows as records of CSV. */
export function chooseCsv(options: V1StreamOptions): FormatChoice {
  return chooseStream(csv, options);
}

function chooseStream(kind: StreamKind, options: V1StreamOptions): FormatChoice {
  const jsonHead = chooseV1Json(options).head;
  return {
    head: kind.head,
    create: (out, events) => new V1Stream(kind, jsonHead, out, events, options),
  };
}

/** Streams one result set. If there is none, or more than one, the reply is JSON. */
class V1Stream extends V1Json<V1StreamOptions> {
  readonly #kind: StreamKind;
  readonly #jsonHead: ReplyHead;
  #isJson = false;
  /** Rows have begun: the reply remains a stream. */
  #hasBegun = false;
  #warnings = 0;

  constructor(
    kind: StreamKind,
    jsonHead: ReplyHead,
    out: ReplyWriter,
    events: FormatEvents,
    options: V1StreamOptions,
  ) {
    super(out, events, options);
    this.#kind = kind;
    this.#jsonHead = jsonHead;
  }

  protected override get isOneResult(): boolean {
    return !this.#isJson;
  }

  override columns(columns: readonly Column[], more: boolean): void {
    if (more && !this.#hasBegun) this.#becomeJson();
    if (this.#isJson) {
      super.columns(columns, more);
      return;
    }
    const found = this.chooseHead(this.options.streamHeads, columns);
    if (found === null) return;
    this.#refuseSecond();
    this.#hasBegun = true;
    this.results.begin(found, this.#kind.framing);
  }

  /** If the run is not stopped, the reply is JSON, which can say that rows are missing. */
  override tooWide(): void {
    if (this.#hasBegun || this.isRefused) return;
    this.#becomeJson();
    super.tooWide();
  }

  override endOfRows(status: number, warnings: number): void {
    this.#warnings = warnings;
    if (!this.#isJson) this.checkOneRow();
    if (this.#isJson) super.endOfRows(status, warnings);
  }

  override ok(ok: OkPacket, more: boolean): void {
    this.#refuseSecond();
    if (this.isRefused) return;
    this.#becomeJson();
    super.ok(ok, more);
  }

  override restart(): boolean {
    if (!super.restart()) return false;
    this.out.head = this.#kind.head;
    this.#isJson = false;
    this.#hasBegun = false;
    return true;
  }

  protected override writeEnd(): void {
    const { count, isCut } = this.results;
    if (this.#isJson) {
      super.writeEnd();
      return;
    }
    const list = this.warningList;
    const warnings = list === '' ? '' : `,"warnings":${this.#warnings}${list}`;
    writeBytes(this.out, Buffer.from(this.#kind.end(count, isCut, warnings)));
  }

  override finishFailed(failure: Failure): boolean {
    return this.endFailed(failure);
  }

  protected override endFailed(failure: AnyFailure): boolean {
    const { failed } = this.#kind;
    if (this.#isJson || failed === null) return false;
    writeBytes(this.out, Buffer.from(failed(failure, this.options.requestId)));
    this.out.end();
    return true;
  }

  #refuseSecond(): void {
    if (this.#hasBegun) throw new Error('a further result came unannounced');
  }

  #becomeJson(): void {
    this.#isJson = true;
    this.out.head = this.#jsonHead;
  }
}

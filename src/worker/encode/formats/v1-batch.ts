// The JSON of /v1/batch: each statement's result as in a reply of /v1/query, then the outcome of the whole batch.
import type { Column, OkPacket } from '../../../shared/mysql/packets.ts';
import type { ServerWarning } from '../../execution/execution.ts';
import type { AnyFailure, ServerFailure } from '../../failure/failure.ts';
import type { FormatChoice } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { writeAscii } from '../text.ts';
import { V1Json, type V1ReplyOptions } from './v1-json.ts';

const head = createReplyHead(200, jsonType);

/** The reply to a batch. Nothing of it leaves before its end. */
export function chooseV1Batch(options: V1ReplyOptions): FormatChoice {
  return { head, create: (out, events) => new V1Batch(out, events, options) };
}

class V1Batch extends V1Json {
  /** Whether something of the current statement is written. */
  #isInStatement = false;
  #retries = 0;

  /** A batch runs for its own request alone. */
  protected override get isOneResult(): boolean {
    return false;
  }

  /** @param more the statement is a CALL: it ends with its OK */
  override columns(columns: readonly Column[], more: boolean): void {
    this.#beginInBatch();
    super.columns(columns, more);
  }

  override endOfRows(status: number, warnings: number): void {
    super.endOfRows(status, warnings);
    if (!this.isSeveral) this.#resultsEnd();
  }

  override ok(ok: OkPacket): void {
    this.#beginInBatch();
    super.ok(ok, false);
    this.#resultsEnd();
  }

  override listWarnings(warnings: readonly ServerWarning[]): void {
    super.listWarnings(warnings);
    this.#endInBatch();
  }

  override restart(): boolean {
    this.#retries += 1;
    this.#isInStatement = false;
    return super.restart();
  }

  protected override writeEnd(): void {
    const { section, requestId } = this.options;
    writeAscii(this.out, `],"request_id":"${requestId}","section":${section}}`);
  }

  protected override locate(failure: ServerFailure): AnyFailure {
    return failure;
  }

  /** The document says `committed` from the start: it leaves only if that becomes true. */
  #beginInBatch(): void {
    if (this.#isInStatement) return;
    this.#isInStatement = true;
    const begin = `{"committed":true,"retries":${this.#retries},"results":[`;
    writeAscii(this.out, this.statement === 0 ? begin : ',');
  }

  #resultsEnd(): void {
    if (this.options.listsWarnings?.[this.statement] !== true) this.#endInBatch();
  }

  #endInBatch(): void {
    this.endResults();
    writeAscii(this.out, '}');
    this.#isInStatement = false;
    this.statement += 1;
    this.beginStatement();
  }
}

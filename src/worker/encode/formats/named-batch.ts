// The JSON of a named batch: the rows of its answer, and the results of its named steps.
import type { OkPacket } from '../../../shared/mysql/packets.ts';
import type { AnyFailure, ServerFailure } from '../../failure/failure.ts';
import type { FormatChoice } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { writeAscii, writeBytes } from '../text.ts';
import { omitRows, V1Json, type V1ReplyOptions } from './v1-json.ts';

const head = createReplyHead(200, jsonType);

/** The places of a statement's result in the reply. If it has none, the result is left out. */
export type ShownPart = {
  /** Its name among the steps; null: it has none. */
  readonly step: string | null;
  readonly isAnswer: boolean;
};

/** One for each statement of the batch. */
export type NamedBatchOptions = V1ReplyOptions & { readonly parts: readonly ShownPart[] };

/** The reply to a batch. Nothing of it leaves before its end. */
export function chooseNamedBatch(options: NamedBatchOptions): FormatChoice {
  return { head, create: (out, events) => new NamedBatch(out, events, options) };
}

/** The bytes of one result, and the begins and ends of its rows in them, in turn. */
type Result = ShownPart & { readonly bytes: Buffer; readonly rowBounds: readonly number[] };

class NamedBatch extends V1Json<NamedBatchOptions> {
  /** Those that are shown, in the order of the statements. */
  #shown: Result[] = [];
  #start = 0;
  #retries = 0;
  #bounds: number[] = [];

  /** A batch runs for its own request alone. */
  protected override get isOneResult(): boolean {
    return false;
  }

  override endOfRows(status: number, warnings: number): void {
    super.endOfRows(status, warnings);
    if (!this.isSeveral) this.#endStatement();
  }

  override ok(ok: OkPacket): void {
    super.ok(ok, false);
    this.#endStatement();
  }

  override restart(): boolean {
    this.#retries += 1;
    this.#shown = [];
    this.#bounds = [];
    this.#start = 0;
    return super.restart();
  }

  /** Results that are shown stay where they are until the end, so that they count as memory of the reply. */
  #endStatement(): void {
    if (this.isRefused) return;
    this.endResults();
    writeAscii(this.out, '}');
    const part = this.options.parts[this.statement] ?? { step: null, isAnswer: false };
    if (part.isAnswer || part.step !== null) {
      const bytes = Buffer.from(this.out.written.subarray(this.#start));
      const rowBounds = this.takeRowBounds().map((at) => at - this.#start);
      this.#shown.push({ ...part, bytes, rowBounds });
      this.#start = this.out.length;
    } else {
      this.takeRowBounds();
      this.out.rollback(this.#start);
    }
    this.statement += 1;
    this.beginStatement();
  }

  protected override writeEnd(): void {
    const { section, requestId } = this.options;
    this.out.rollback(0);
    writeAscii(this.out, '{"committed":true,');
    const answer = this.#shown.find(({ isAnswer }) => isAnswer);
    if (answer !== undefined) {
      this.#write(answer, 1, answer.bytes.length - 1);
      writeAscii(this.out, ',');
    }
    writeAscii(this.out, '"steps":{');
    for (const [at, result] of this.#shown.filter(({ step }) => step !== null).entries()) {
      writeAscii(this.out, `${at === 0 ? '' : ','}"${result.step}":`);
      this.#write(result, 0, result.bytes.length);
    }
    const end = `"retries":${this.#retries},"request_id":"${requestId}","section":${section}}`;
    writeAscii(this.out, `},${end}`);
  }

  #write({ bytes, rowBounds }: Result, from: number, to: number): void {
    const { length } = this.out;
    for (const at of rowBounds) this.#bounds.push(length + at - from);
    writeBytes(this.out, bytes.subarray(from, to));
  }

  protected override omitRows(reply: Buffer): Buffer {
    return omitRows(reply, this.#bounds);
  }

  protected override locate(failure: ServerFailure): AnyFailure {
    return failure;
  }
}

// A reply that is one JSON object, known when its statement has succeeded: results are nobody's.
// Must not know what it tells.
import type { Answer } from '../../execution/execution.ts';
import type { Format, FormatChoice } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { problemHead, problemJson } from './problem.ts';

/** What the reply tells, and how. */
export type ToldObject = {
  readonly status: number;
  readonly requestId: string;
  /** Asked when the statement has succeeded. */
  readonly tell: () => object;
};

/** Such a reply; what MySQL refuses is a problem (RFC 9457). */
export function chooseToldObject(told: ToldObject): FormatChoice {
  return {
    head: createReplyHead(told.status, jsonType),
    create: (out) => new ToldObjectFormat(out, told),
  };
}

class ToldObjectFormat implements Format {
  readonly rowCount = 0;
  readonly hasLeft = false;
  readonly #out: ReplyWriter;
  readonly #told: ToldObject;

  constructor(out: ReplyWriter, told: ToldObject) {
    this.#out = out;
    this.#told = told;
  }

  get totalBytes(): number {
    return this.#out.totalBytes;
  }

  columns(): void {}

  tooWide(): void {}

  row(): void {}

  endOfRows(): void {}

  ok(): void {}

  fitsColumns(): boolean {
    return true;
  }

  fitsRows(): boolean {
    return true;
  }

  restart(): boolean {
    return true;
  }

  held(): null {
    return null;
  }

  adopt(): void {
    throw new Error("a reply of its own is nobody else's");
  }

  finish({ failure }: Answer): boolean {
    const { requestId, tell } = this.#told;
    if (failure === null) {
      writeBytes(this.#out, Buffer.from(JSON.stringify(tell())));
    } else {
      this.#out.head = problemHead(failure);
      writeBytes(this.#out, Buffer.from(problemJson(failure, requestId)));
    }
    this.#out.end();
    return true;
  }
}

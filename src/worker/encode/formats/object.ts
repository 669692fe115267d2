// A reply that is one JSON object and has no results, such as the reply to COMMIT.
import type { Answer } from '../../execution/execution.ts';
import { Format, type FormatChoice, type FormatEvents, type FormatOptions } from '../format.ts';
import { createReplyHead, jsonType } from '../head.ts';
import { ResultHeads } from '../result-rows.ts';
import { writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';
import { withoutPlace, writeProblem } from './problem.ts';

/** An object to send. */
export type ObjectReply = {
  readonly status: number;
  readonly requestId: string;
  /** Called once the statement has succeeded. */
  readonly describe: () => object;
};

/** The reply to a statement whose results do not matter. If MySQL refuses the statement, the reply is a problem (RFC 9457). */
export function chooseObject(reply: ObjectReply): FormatChoice {
  return {
    head: createReplyHead(reply.status, jsonType),
    create: (out, events) => new ObjectFormat(out, events, reply),
  };
}

const noResults: FormatOptions = {
  maxRows: 0,
  maxResultBytes: 0,
  heads: new ResultHeads(() => {
    throw new Error('a reply without results has no columns');
  }),
  rowModule: null,
};

class ObjectFormat extends Format {
  readonly #reply: ObjectReply;

  constructor(out: ReplyWriter, events: FormatEvents, reply: ObjectReply) {
    super(out, events, noResults);
    this.#reply = reply;
  }

  protected get isOneResult(): boolean {
    return false;
  }

  columns(): void {}

  endOfRows(): void {}

  ok(): void {}

  finish({ failure }: Answer): boolean {
    const { requestId, describe } = this.#reply;
    if (failure === null) writeBytes(this.out, Buffer.from(JSON.stringify(describe())));
    else writeProblem(this.out, withoutPlace(failure), requestId);
    this.out.end();
    return true;
  }
}

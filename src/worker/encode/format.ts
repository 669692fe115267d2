// What a format is: it makes one reply of the results and the end of a request's statements.
// Must not know any of them.
import type { Answer, RunSink } from '../execution/execution.ts';
import type { Failure } from '../failure/failure.ts';
import type { ReplyHead } from './head.ts';
import type { ReplyWriter } from './writer.ts';

/** One reply under way. Without `finish` nothing whole ever leaves. */
export interface Format extends RunSink {
  /** Rows of all results. */
  readonly rowCount: number;
  /** Ends the reply, with MySQL's own error where there was one; returns false when it can only be reset. */
  finish(answer: Answer): boolean;
  /** Ends a reply that has begun to leave with a failure of the gateway's own; missing or false: it can only be reset. */
  finishFailed?(failure: Failure): boolean;
}

/** Whose reply it is. */
export interface FormatEvents {
  /** The body has outgrown `max_result_bytes`; called once. */
  replyTooLarge(): void;
  /** A result has more columns than are taken. What is not stopped for that is answered with this result empty and marked as cut. */
  replyTooWide(): void;
  /** There can be no reply of these results, whatever else they are: the failure's outcome is whoever knows it to say. */
  replyRefused(failure: Failure): void;
}

/** The format that a request has chosen. */
export type FormatChoice = {
  /** The head, as long as nothing is known against it. */
  readonly head: ReplyHead;
  readonly create: (out: ReplyWriter, events: FormatEvents) => Format;
};

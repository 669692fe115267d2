// Work in pieces, so that other work can run in between.
/** Each `yield` is a place at which it may be interrupted. Between two of them lies less than a millisecond, unless said otherwise. */
export type Pieces<Result> = Generator<undefined, Result, undefined>;

/** How many small steps (tokens, values) are done between two places at which work may be interrupted. */
export const stepsInPiece = 2048;

/** A text or body of more than this is worked on in pieces: decoding it takes a few milliseconds. In characters or bytes. */
export const longFrom = 64 * 1024;

/** Does all of it at once. */
export function allAtOnce<Result>(work: Pieces<Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

// A reply that is kept with its idempotency key: made before it leaves, without its rows where it is long, and given again.
// Must not know where it is kept.
import { withHeaders } from './head.ts';
import { writeBytes } from './text.ts';
import type { ReplyWriter } from './writer.ts';

/** Where in a reply that is held back the rows of its results begin and end. */
export class RowBounds {
  /** Begin and end in turn. */
  readonly #bounds: number[] = [];

  /** Rows begin here; or end, where they have begun. */
  note(at: number): void {
    this.#bounds.push(at);
  }

  clear(): void {
    this.#bounds.length = 0;
  }

  /** The reply without its rows, which says so; or as it is, where there are none. */
  cutRows(reply: Buffer): Buffer {
    const parts: Buffer[] = [];
    let from = 0;
    let cut = 0;
    for (const [index, at] of this.#bounds.entries()) {
      const isBegin = index % 2 === 0;
      if (isBegin) parts.push(reply.subarray(from, at));
      else cut += at - from;
      from = at;
    }
    if (cut === 0) return reply;
    parts.push(reply.subarray(from, reply.length - 1), Buffer.from(',"rows_omitted":true}'));
    return Buffer.concat(parts);
  }
}

/** What is to be kept of a reply that is complete and has not left; the bytes are valid until more is written. */
export function sealReply(out: ReplyWriter, bounds: RowBounds | null, mostBytes: number): Buffer {
  const reply = out.bytes.subarray(0, out.length);
  return bounds === null || reply.length <= mostBytes ? reply : bounds.cutRows(reply);
}

/** Writes a reply that was kept, and says so where it was given before. */
export function replayReply(out: ReplyWriter, kept: Buffer, isRepeated: boolean): void {
  writeBytes(out, kept);
  if (isRepeated) out.head = withHeaders(out.head, ['Idempotency-Replayed', 'true']);
}

// The buffers that replies are written into, used again and again.
// Must not know what is in them.

/** Room beyond a full buffer, so that a small piece can be written without asking first. */
export const slackBytes = 16 * 1024;
const streamBytes = 64 * 1024;
const keptBuffers = 64;

/** Lends buffers of one size; what is given back is lent again before anything is allocated. */
export class BufferPool {
  readonly size: number;
  readonly #free: Buffer[] = [];

  /** @param holdBytes how much of a reply is held back before its status is fixed */
  constructor(holdBytes: number) {
    this.size = Math.max(Math.min(holdBytes, streamBytes), streamBytes) + slackBytes;
  }

  /** Whoever acquires a buffer must release it, or lose it to the garbage collector. */
  acquire(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(this.size);
  }

  release(buffer: Buffer): void {
    if (buffer.length === this.size && this.#free.length < keptBuffers) this.#free.push(buffer);
  }
}

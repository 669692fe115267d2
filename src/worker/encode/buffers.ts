// The buffers that replies are written into, used again and again.
// Must not know what is in them.

/** Room beyond a full buffer, so that a small piece can be written without asking first. */
export const slackBytes = 16 * 1024;
/** How much a reply that streams gathers before it is sent on. */
export const streamBytes = 64 * 1024;
const bufferBytes = streamBytes + slackBytes;
const keptBuffers = 64;

/** Lends buffers of one size; what is given back is lent again before anything is allocated. */
export class BufferPool {
  readonly #free: Buffer[] = [];

  /** Whoever acquires a buffer must release it, or lose it to the garbage collector. */
  acquire(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Takes a buffer back; one of another size is left to the garbage collector. */
  release(buffer: Buffer): void {
    if (buffer.length === bufferBytes && this.#free.length < keptBuffers) this.#free.push(buffer);
  }
}

// Collects a reply's bytes: holds them back while the status may still change, then streams.
import type { ReplyHead } from './head.ts';

/** Sends the bytes of one reply. */
export interface Transport {
  /** Sends the first `length` bytes as a whole reply; it calls `sent` once they may be overwritten. */
  sendWhole(head: ReplyHead, bytes: Buffer, length: number, sent: () => void): void;
  /** Begins a reply of unknown length. Its head is final. */
  begin(head: ReplyHead): void;
  /** Sends a part. The transport reports a slow reader. */
  sendPart(bytes: Buffer, sent: () => void): void;
  /** Ends a reply that `begin` began. */
  finish(): void;
}

/** The buffer before anything is written: a reply in the queue holds no memory. */
const nothing = Buffer.alloc(0);

/**
 * One reply. Encoders call `reserve`, write into `bytes` at `length`, and advance `length`.
 *
 *     bytes  |......held back......|......slack......|
 *            0                  holdBytes         capacity
 *
 * Beyond `holdBytes` the reply is committed: it streams from then on.
 */
export class ReplyWriter {
  /** The format may change the head until the first byte leaves. */
  head: ReplyHead;
  bytes: Buffer = nothing;
  length = 0;
  committed = false;
  /** Bytes of the body that have left. */
  #sentBytes = 0;
  readonly #buffers: BufferPool;
  readonly #transport: Transport;
  readonly #holdBytes: number;
  /** Called instead of committing; null: the reply may be committed. */
  #onFull: (() => void) | null;
  #limit: number;

  /** @param onFull called when the reply outgrows `holdBytes`; the writer then holds everything until `open` */
  constructor(
    buffers: BufferPool,
    holdBytes: number,
    transport: Transport,
    head: ReplyHead,
    onFull: (() => void) | null = null,
  ) {
    this.#holdBytes = holdBytes;
    this.#onFull = onFull;
    this.head = head;
    this.#buffers = buffers;
    this.#transport = transport;
    this.#limit = holdBytes;
  }

  get totalBytes(): number {
    return this.#sentBytes + this.length;
  }

  /** The bytes that have not left; they are valid until more is written. */
  get written(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  /** The number of bytes that can still be written before the reply is committed. */
  get heldRoom(): number {
    return this.committed ? 0 : Math.max(0, this.#limit - this.length);
  }

  /** Whether the reply has outgrown `holdBytes` and waits for `open`. */
  get isFull(): boolean {
    return !this.committed && this.length > this.#holdBytes;
  }

  /** Beyond this length the next `reserve` sends the bytes. */
  get fullLength(): number {
    return this.#limit;
  }

  /** Makes room for `count` bytes, at most `slackBytes`. Commits the reply if it has outgrown `holdBytes`. */
  reserve(count: number): void {
    if (this.length + count <= this.bytes.length && this.length <= this.#limit) return;
    if (this.bytes === nothing) this.bytes = this.#buffers.acquire();
    else if (this.length <= this.#limit) this.#grow();
    else if (this.#onFull === null) this.#flush();
    else this.#close(this.#onFull);
  }

  /** Allows the reply to be committed, and commits it if it is full. Must not be called while an encoder writes. */
  open(): void {
    this.#onFull = null;
    this.#limit = this.#holdBytes;
    if (this.isFull) this.#flush();
  }

  #close(onFull: () => void): void {
    this.#limit = Number.POSITIVE_INFINITY;
    this.#grow();
    onFull();
  }

  /** Removes what was written after `length` was `mark`. Only before the reply is committed. */
  rollback(mark: number): void {
    this.length = mark;
    // A reply that begins again may become full again.
    if (!this.committed && mark <= this.#holdBytes) this.#limit = this.#holdBytes;
  }

  /** Ends the reply. Nothing may be written afterwards. */
  end(): void {
    if (this.length > this.#limit && !this.committed) this.#flush();
    const bytes = this.bytes;
    const release = () => this.#buffers.release(bytes);
    if (!this.committed) {
      this.#transport.sendWhole(this.head, bytes, this.length, release);
      return;
    }
    if (this.length > 0) this.#transport.sendPart(bytes.subarray(0, this.length), release);
    else release();
    this.#transport.finish();
  }

  /** Returns the buffer without sending more. Nothing may be written afterwards. */
  abandon(): void {
    this.#buffers.release(this.bytes);
  }

  #flush(): void {
    const bytes = this.bytes;
    if (!this.committed) {
      this.committed = true;
      this.#limit = streamBytes;
      this.#transport.begin(this.head);
    }
    this.#sentBytes += this.length;
    this.#transport.sendPart(bytes.subarray(0, this.length), () => this.#buffers.release(bytes));
    this.bytes = this.#buffers.acquire();
    this.length = 0;
  }

  /** Doubles the held-back part, for a `buffer` setting above the usual size. */
  #grow(): void {
    const bytes = this.bytes;
    const wider = Buffer.allocUnsafeSlow(
      Math.min(bytes.length * 2, this.#limit + slackBytes) + slackBytes,
    );
    bytes.copy(wider, 0, 0, this.length);
    this.bytes = wider;
    this.#buffers.release(bytes);
  }
}

/** Room beyond a full buffer, so that a small piece always fits. */
export const slackBytes = 16 * 1024;
/** Bytes that a streaming reply collects before it sends them. */
export const streamBytes = 64 * 1024;
const bufferBytes = streamBytes + slackBytes;
const keptBuffers = 64;

/** Lends buffers of one size. It lends a returned buffer before it allocates one. */
export class BufferPool {
  readonly #free: Buffer[] = [];

  /** The caller releases the buffer, or leaves it to the garbage collector. */
  acquire(): Buffer {
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
  }

  /** Takes a buffer back, unless it has another size or the pool is full. */
  release(buffer: Buffer): void {
    if (buffer.length === bufferBytes && this.#free.length < keptBuffers) this.#free.push(buffer);
  }
}

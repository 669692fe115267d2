// Gathers a reply's bytes: holds them back until the status can no longer change, streams after that.
import type { ReplyHead } from './head.ts';

/** How the bytes leave. */
export interface Transport {
  /** Sends the first `length` bytes as a whole reply; `sent` is called when they may be overwritten. */
  sendWhole(head: ReplyHead, bytes: Buffer, length: number, sent: () => void): void;
  /** Begins a reply of unknown length: from here on its head is fixed. */
  begin(head: ReplyHead): void;
  /** Sends a part. It is the transport's to say that its reader is slow. */
  sendPart(bytes: Buffer, sent: () => void): void;
  /** Ends what `begin` began. */
  finish(): void;
}

/** What a reply has before anything is written: one that waits for its turn holds no memory. */
const nothing = Buffer.alloc(0);

/**
 * One reply. Encoders write into `bytes` at `length` after `reserve`; nobody else moves `length`.
 *
 *     bytes  |......held back......|......slack......|
 *            0                  holdBytes         capacity
 *
 * Past `holdBytes` the reply is committed: it streams from then on.
 */
export class ReplyWriter {
  /** What the reply begins with; its format may change it until the first byte leaves. */
  head: ReplyHead;
  bytes: Buffer = nothing;
  length = 0;
  committed = false;
  /** Bytes of the body so far, those that have left included. */
  #sentBytes = 0;
  readonly #buffers: BufferPool;
  readonly #transport: Transport;
  readonly #holdBytes: number;
  /** Called instead of committing; null: nothing is in the way. */
  #onFull: (() => void) | null;
  #limit: number;

  /** @param onFull called when the reply has outgrown what is held back: all is held from then on, until `open` */
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

  /** What may still be written before the reply is committed. */
  get heldRoom(): number {
    return this.committed ? 0 : Math.max(0, this.#limit - this.length);
  }

  /** Whether it has outgrown what is held back, and waits to be opened. */
  get isFull(): boolean {
    return !this.committed && this.length > this.#holdBytes;
  }

  /** Beyond this length the next `reserve` sends what is there. */
  get fullLength(): number {
    return this.#limit;
  }

  /** Makes room for `count` bytes, at most `slackBytes`. Commits the reply when it has outgrown what is held back. */
  reserve(count: number): void {
    if (this.length + count <= this.bytes.length && this.length <= this.#limit) return;
    if (this.bytes === nothing) this.bytes = this.#buffers.acquire();
    else if (this.length <= this.#limit) this.#grow();
    else if (this.#onFull === null) this.#flush();
    else this.#close(this.#onFull);
  }

  /** What was in the way is over: a reply that is full is committed now. Not while something is written. */
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

  /** Takes back what was written after `length` was `mark`. Only before the reply is committed. */
  rollback(mark: number): void {
    this.length = mark;
    // Begun anew it may be full once more, with something else.
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

  /** Gives the buffer back without sending anything more. Nothing may be written afterwards. */
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

  /** A `buffer` setting above the usual size: the held-back part doubles as it is needed. */
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

// The bytes of one socket, handed out by line, by number, or to the end; the kind of end is kept.
import type { Socket } from 'node:net';
import { HttpReplyError } from './http-error.ts';

/** How the peer ended: `fin` in order, `reset` by RST. */
export type End = 'fin' | 'reset';

const longestLine = 64 * 1024;

/** Collects what a socket receives. Every read rejects with HttpReplyError when the bytes do not come. */
export class ByteSource {
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  readonly #ended: Promise<End>;
  #chunks: Buffer[] = [];
  #length = 0;
  #end: End | null = null;
  readonly #waiting = new Set<() => void>();

  /** `tellsResets` false: an RST may be taken for a FIN, and nothing is tried to find out. */
  constructor(socket: Socket, timeoutMs: number, tellsResets = true) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    // Read now, because a connection that was reset has no peer any more. A unix socket has no RST.
    const mayBeReset = tellsResets && socket.remotePort !== undefined;
    this.#ended = new Promise((resolve) => {
      const finish = (end: End) => {
        this.#end ??= end;
        resolve(this.#end);
        this.#wake();
      };
      socket.on('end', () => {
        if (mayBeReset) judgeEnd(socket, finish);
        else finish('fin');
      });
      socket.on('error', (error: NodeJS.ErrnoException) => {
        finish(isReset(error) ? 'reset' : 'fin');
      });
      socket.on('close', () => finish('fin'));
    });
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      this.#wake();
    });
  }

  /** Bytes received and not yet read. */
  get waiting(): number {
    return this.#length;
  }

  /** One line without its CRLF; a bare LF is no line end. */
  async line(): Promise<string> {
    for (;;) {
      const at = this.#join().indexOf('\r\n');
      if (at >= 0) {
        const line = this.#take(at);
        this.#take(2);
        return line.toString('latin1');
      }
      if (this.#length > longestLine) throw new HttpReplyError('malformed', 'a line without end');
      await this.#more('in a line');
    }
  }

  async exactly(count: number, what: string): Promise<Buffer> {
    while (this.#length < count) await this.#more(`in ${what}`);
    return this.#take(count);
  }

  /** Everything up to the peer's FIN; a reset is an error. */
  async toEnd(): Promise<Buffer> {
    while (this.#end === null) await this.#wait('waiting for the end');
    if (this.#end === 'reset') throw this.#fault('reset', 'before the end');
    return this.#take(this.#length);
  }

  /** The bytes that have arrived and were not read. */
  received(): Buffer {
    return this.#take(this.#length);
  }

  /** Resolves once at least one byte waits or the peer has ended. */
  async any(): Promise<void> {
    while (this.#length === 0 && this.#end === null) await this.#wait('waiting for a byte');
  }

  /** Resolves to how the peer ended the connection. Later bytes are kept. */
  async end(): Promise<End> {
    while (this.#end === null) await this.#wait('waiting for the connection to end');
    return this.#ended;
  }

  async #more(where: string): Promise<void> {
    if (this.#end !== null) {
      throw this.#fault(this.#end === 'reset' ? 'reset' : 'ended-early', where);
    }
    await this.#wait(where);
  }

  #wait(where: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(this.#fault('timeout', `${this.#timeoutMs} ms, ${where}`));
      }, this.#timeoutMs);
      this.#waiting.add(() => {
        clearTimeout(timer);
        resolve();
      });
      if (this.#socket.destroyed) this.#wake();
    });
  }

  #wake(): void {
    for (const proceed of this.#waiting) proceed();
    this.#waiting.clear();
  }

  #fault(fault: 'reset' | 'ended-early' | 'timeout', detail: string): HttpReplyError {
    return new HttpReplyError(fault, detail, this.#take(this.#length));
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? Buffer.alloc(0);
  }

  #take(count: number): Buffer {
    const all = this.#join();
    this.#chunks = count < all.length ? [all.subarray(count)] : [];
    this.#length -= count;
    return all.subarray(0, count);
  }
}

/**
 * Finds out whether an end that Node calls 'end' was an RST: libuv reports end of file when data and RST arrive together.
 * The kernel knows better: to write nothing sends nothing, and fails on a connection that was reset.
 */
function judgeEnd(socket: Socket, finish: (end: End) => void): void {
  // A connection that this end has closed takes no write.
  if (!socket.writable) finish('fin');
  // Behind what still waits to be sent: 'close' or 'error' may come first, and then says the same.
  else socket.write('', (error) => finish(isReset(error) ? 'reset' : 'fin'));
}

function isReset(error: NodeJS.ErrnoException | null | undefined): boolean {
  return error?.code === 'ECONNRESET' || error?.code === 'EPIPE';
}

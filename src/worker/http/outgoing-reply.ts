// A reply that counts the bytes of its body, and that can leave as a whole in one write.
// Must not know what the bytes say.
import type { FailureCode } from '../../shared/failure-codes.ts';
import { createSecondClock } from '../observe/second-clock.ts';
import { ServerResponse, STATUS_CODES } from './node-http.ts';

/**
 * What node's own writeHead, write and end do a reply with, as of Node 20.20; documented nowhere. A test compares what
 * leaves with what they send: it is to be run wherever another version of node is wanted.
 */
type Internals = {
  _header: string | null;
  /** The connection is closed behind this reply. */
  _last: boolean;
  readonly _keepAliveTimeout: number;
  _send(body: string, encoding: 'latin1'): boolean;
};

/** RFC 9110 section 5.6.7. */
const date = createSecondClock((second) => new Date(second * 1000).toUTCString());

/** Headers (name, value, name, value) as lines with their ends. They are not checked. */
export function headerLines(headers: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < headers.length; index += 2) {
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`;
  }
  return lines;
}

/** What the request's head wants to hear before its body is sent (RFC 9110 section 10.1.1). */
export type Expectation = 'none' | '100-continue' | 'unknown';

/** Who must know when a reply has left, or its connection is gone, before the next request on it is looked at. */
export interface Attended {
  closed(): void;
}

/** Node's ServerResponse, handed to the server as its class of replies. */
export class OutgoingReply extends ServerResponse {
  /** Bytes of the body so far; chunked framing does not count. */
  bodyBytes = 0;
  /** Why the request failed; null: it did not, or it is MySQL's own error. */
  failureCode: FailureCode | null = null;
  expectation: Expectation = 'none';
  /** The statements that it is the reply of, while there are some. */
  attended: Attended | null = null;
  /** Header lines beside those that a whole reply is sent with. */
  #moreLines = '';

  /** Adds headers to the reply, however it is sent: name, value, name, value. They are not checked. */
  addHeaders(headers: readonly string[]): void {
    for (let index = 0; index < headers.length; index += 2) {
      const [name, value] = [headers[index] as string, headers[index + 1] as string];
      this.setHeader(name, value);
    }
    this.#moreLines += headerLines(headers);
  }

  /**
   * Sends a whole reply to anything but a HEAD. writeHead looks at every header again, and write and end
   * take two steps to one write; docs/profiles.md has what this brought together with two other changes.
   * @param head lines with their ends, Content-Length among them, Date and Connection not; they are not checked
   * @param body one character a byte
   */
  sendWhole(status: number, head: string, body: string): void {
    const internals = this as unknown as Internals;
    internals._last = !this.shouldKeepAlive;
    this.statusCode = status;
    internals._header = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}${this.#moreLines}Date: ${date(Date.now())}\r\n${this.#connectionLines()}\r\n`;
    this.bodyBytes = body.length;
    internals._send(body, 'latin1');
    this.end();
  }

  override write(chunk: unknown, encoding?: unknown, done?: unknown): boolean {
    this.#count(chunk, encoding);
    return super.write(chunk, encoding as BufferEncoding, done as () => void);
  }

  override end(chunk?: unknown, encoding?: unknown, done?: unknown): this {
    this.#count(chunk, encoding);
    return super.end(chunk, encoding as BufferEncoding, done as () => void);
  }

  #connectionLines(): string {
    if (!this.shouldKeepAlive) return 'Connection: close\r\n';
    const seconds = Math.floor((this as unknown as Internals)._keepAliveTimeout / 1000);
    return `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n`;
  }

  #count(chunk: unknown, encoding: unknown): void {
    if (this.req.method === 'HEAD') return;
    if (typeof chunk === 'string') {
      const named = typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8';
      this.bodyBytes += Buffer.byteLength(chunk, named);
    } else if (chunk instanceof Uint8Array) {
      this.bodyBytes += chunk.length;
    }
  }
}

// A reply that counts the bytes of its body, and that can leave as a whole in one write.
// Must not know what the bytes say.
import type { FailureCode } from '../../shared/failure-codes.ts';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines } from '../encode/head.ts';
import type { RenderFailure } from '../failure/failure.ts';
import { createSecondClock } from '../observe/second-clock.ts';
import { ServerResponse, STATUS_CODES } from './node-http.ts';
import { sendAtOnce } from './node-internals.ts';

/** RFC 9110 section 5.6.7. */
const date = createSecondClock((second) => new Date(second * 1000).toUTCString());

/** Header lines as name, value, name, value. */
function headersIn(lines: string): string[] {
  return lines.split('\r\n').flatMap((line) => {
    const end = line.indexOf(': ');
    return end < 0 ? [] : [line.slice(0, end), line.slice(end + 2)];
  });
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
  /** How a failure is told on the path that was asked for. */
  renderFailure: RenderFailure = renderPlainFailure;
  expectation: Expectation = 'none';
  /** The statements that it is the reply of, while there are some. */
  attended: Attended | null = null;
  /** Its request was passed on by another worker. */
  isForwarded = false;
  /** Whole replies leave by node's internals, not by writeHead and end. */
  isSentAtOnce = false;
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
   * Sends a whole reply to anything but a HEAD.
   * @param head lines with their ends, Content-Length among them, Date and Connection not; they are not checked
   * @param body one character a byte
   */
  sendWhole(status: number, head: string, body: string): void {
    if (!this.isSentAtOnce) {
      this.#sendAsDocumented(status, head, body);
      return;
    }
    this.statusCode = status;
    this.bodyBytes = body.length;
    const lines = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}${this.#moreLines}Date: ${date(Date.now())}\r\n`;
    sendAtOnce(this, lines, body);
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

  #sendAsDocumented(status: number, head: string, body: string): void {
    // What was set before would come first.
    for (const name of this.getHeaderNames()) this.removeHeader(name);
    this.writeHead(status, headersIn(`${head}${this.#moreLines}`));
    this.end(body, 'latin1');
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

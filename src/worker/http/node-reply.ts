// A reply on node's ServerResponse, which counts the bytes of its body and can leave whole in one write.
import type { FailureCode } from '../../shared/failure-codes.ts';
import { createSecondClock } from '../../shared/observe/time-text.ts';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines } from '../encode/head.ts';
import type { RenderFailure } from '../failure/failure.ts';
import { ServerResponse, STATUS_CODES, sendAtOnce } from './node-internals.ts';
import type { Attended, OutgoingReply } from './reply.ts';
import type { ExpectHeader } from './request.ts';

/** The value of Date (RFC 9110 section 5.6.7). */
const date = createSecondClock((second) => new Date(second * 1000).toUTCString());

/** Header lines as name, value, name, value. */
function headersIn(lines: string): string[] {
  return lines.split('\r\n').flatMap((line) => {
    const end = line.indexOf(': ');
    return end < 0 ? [] : [line.slice(0, end), line.slice(end + 2)];
  });
}

/** The class of replies that node's server creates. */
export class NodeReply extends ServerResponse implements OutgoingReply {
  bodyBytes = 0;
  failureCode: FailureCode | null = null;
  renderFailure: RenderFailure = renderPlainFailure;
  expectation: ExpectHeader = 'none';
  attended: Attended | null = null;
  isForwarded = false;
  /** Whether whole replies leave by `sendAtOnce`, not by writeHead and end. */
  isSentAtOnce = false;
  /** The lines of added headers. */
  #moreLines = '';

  addHeaders(headers: readonly string[]): void {
    for (let index = 0; index < headers.length; index += 2) {
      const [name, value] = [headers[index] as string, headers[index + 1] as string];
      this.setHeader(name, value);
    }
    this.#moreLines += headerLines(headers);
  }

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
    // Headers that were set before would come first.
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

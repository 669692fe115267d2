// Ends a connection so that nobody takes what was sent for whole.
// Must not know why.
import type { Socket } from 'node:net';
import type { FailureCode } from '../../shared/failure-codes.ts';
import { createSecondClock } from '../../shared/observe/time-text.ts';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines, typedHeaders } from '../encode/head.ts';
import {
  type Failure,
  internalFailure,
  type Outcome,
  type RenderFailure,
  refusal,
} from '../failure/failure.ts';
import {
  ServerResponse,
  STATUS_CODES,
  sendAtOnce,
  sourceOf,
  transportOf,
} from './node-internals.ts';
import { announcesBody } from './request.ts';

/**
 * Resets a client's connection (RST). Where all was sent and the FIN is on its way there is nothing to
 * take back, and libuv would refuse the reset and leave the handle open for ever: then it just closes. So does a unix
 * socket, which knows no RST (node throws for it, and for TLS).
 */
export function resetConnection(socket: Socket | null): void {
  if (socket === null) return;
  const isSent = socket.writableEnded && socket.writableLength === 0;
  const transport = transportOf(socket);
  if (!isSent && transport?.localPort !== undefined) transport.resetAndDestroy();
  socket.destroy();
}

/**
 * Bytes that arrive at a closed socket are answered by RST, at which clients throw away what they have
 * received (RFC 9112 section 9.6): so they are read and dropped, no longer than this.
 */
const lingerMs = 2_000;

/** Ends a reply whose request may not have been read to its end. `body` is all of the body. */
export function endReply(response: OutgoingReply, body: string): void {
  const request = response.req;
  const isAllRead =
    request.complete || !announcesBody(request) || sourceOf(request.socket).readableEnded;
  if (response.shouldKeepAlive || isAllRead) {
    response.end(body);
    return;
  }
  response.write(body);
  const timer = setTimeout(() => response.end(), lingerMs);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  request.once('close', end);
  request.once('end', end);
  request.resume();
}

/** Sends the last bytes on a socket of which nothing more is parsed: what still comes is read, and dropped by who reads it. */
export function endSocket(socket: Socket, bytes: string): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroySoon());
  socket.resume();
}

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

/** The headers of a failure beside those of its body. */
export function failureHeaders({ retryAfterSeconds, allow }: Failure): readonly string[] {
  const headers: string[] = [];
  if (retryAfterSeconds !== undefined) headers.push('Retry-After', String(retryAfterSeconds));
  if (allow !== undefined) headers.push('Allow', allow);
  return headers;
}

/** Answers with a failure. Nothing may have been sent before. */
export function sendFailure(
  response: OutgoingReply,
  failure: Failure,
  requestId: string,
  moreHeaders: readonly string[] = [],
): void {
  response.failureCode = failure.code;
  const { contentType, body } = response.renderFailure(failure, requestId);
  const headers = [
    ...typedHeaders(contentType),
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...failureHeaders(failure),
    'X-Request-ID',
    requestId,
    ...moreHeaders,
  ];
  // Refusals come in crowds. A client that waits for 100 (Continue) before it sends its body gets node's own reply.
  const isPlain = response.req.method !== 'HEAD' && response.expectation === 'none';
  if (isPlain && response.shouldKeepAlive) {
    response.sendWhole(failure.status, headerLines(headers), Buffer.from(body).toString('latin1'));
    return;
  }
  response.writeHead(failure.status, headers);
  endReply(response, body);
}

/** Ends a reply after an exception: with INTERNAL if nothing has left yet, otherwise by a reset, so that no client takes it for whole. */
export function endWithFault(response: OutgoingReply, requestId: string, outcome: Outcome): void {
  if (response.destroyed || response.writableEnded) return;
  response.failureCode = 'INTERNAL';
  if (response.headersSent) resetConnection(response.socket);
  else sendFailure(response, internalFailure(outcome), requestId);
}

/** What node's parser or clock objected to, as the status that says so. */
export function syntaxFailure(error: NodeJS.ErrnoException): Failure {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ? refusal('REQUEST_TIMEOUT', 'The request did not arrive in time.')
    : refusal('BAD_REQUEST', 'The request is not well-formed HTTP.');
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  414: 'URI Too Long',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
};

/** Answers where no ServerResponse exists, and closes; returns the body's bytes. */
export function endWithFailure(
  socket: Socket,
  failure: Failure,
  requestId: string,
  moreHeaders: readonly string[],
): number {
  const { contentType, body } = renderPlainFailure(failure, requestId);
  const head = headerLines([
    ...typedHeaders(contentType),
    ...moreHeaders,
    'X-Request-ID',
    requestId,
    'Content-Length',
    String(Buffer.byteLength(body)),
    ...failureHeaders(failure),
  ]);
  const line = `HTTP/1.1 ${failure.status} ${reasons[failure.status] ?? 'Error'}\r\n`;
  endSocket(socket, `${line}${head}Connection: close\r\n\r\n${body}`);
  return Buffer.byteLength(body);
}

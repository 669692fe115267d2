// A reply as the rest of the worker sees it, and how it ends: with a failure, or by a reset.
import type { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { FailureCode } from '../../shared/failure-codes.ts';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines, typedHeaders } from '../encode/head.ts';
import {
  type Failure,
  internalFailure,
  type Outcome,
  type RenderFailure,
  refusal,
} from '../failure/failure.ts';
import { STATUS_CODES, sourceOf, transportOf } from './node-internals.ts';
import { announcesBody, type ExpectHeader, type IncomingRequest } from './request.ts';

/** The statements whose results are a reply. */
export interface Attended {
  /** The reply has left, or its connection is gone. Called before the next request on the connection is handled. */
  closed(): void;
}

/** A reply: a stream of the bytes of its body, behind a head. */
export interface OutgoingReply extends Writable {
  readonly req: IncomingRequest;
  readonly expectation: ExpectHeader;
  /** Whether another worker has passed the request on. */
  readonly isForwarded: boolean;
  /** Null once the connection is gone. */
  readonly socket: Socket | null;

  statusCode: number;
  /** Whether the connection stays open behind this reply. */
  shouldKeepAlive: boolean;
  /** Whether a body without Content-Length is sent in chunks. */
  useChunkedEncodingByDefault: boolean;
  setHeader(name: string, value: string | number): unknown;
  appendHeader(name: string, value: string): unknown;
  getHeader(name: string): string | number | readonly string[] | undefined;
  getHeaderNames(): string[];
  removeHeader(name: string): void;
  /** Adds headers however the reply is sent: name, value, name, value. They are not checked. */
  addHeaders(headers: readonly string[]): void;
  writeContinue(): void;
  /** @param headers name, value, name, value; they replace headers of the same names */
  writeHead(status: number, headers?: string[]): unknown;
  /** Whether the head has left. */
  readonly headersSent: boolean;
  /**
   * Sends a whole reply, in one write where that is possible. Not for HEAD.
   * @param head header lines with their ends, with Content-Length, without Date and Connection; they are not checked
   * @param body one character for each byte
   */
  sendWhole(status: number, head: string, body: string): void;

  /** How many bytes of the body were written, without chunked framing. */
  readonly bodyBytes: number;
  /** Why the request failed; null: it did not, or MySQL rejected the statement. */
  failureCode: FailureCode | null;
  /** How the path that was asked for renders a failure. */
  renderFailure: RenderFailure;
  /** Null: no statements run for this reply. */
  attended: Attended | null;
}

/**
 * Resets a client's connection (RST), so that the client does not take an incomplete reply for a complete one. If everything was sent and
 * the FIN is on its way, libuv refuses a reset and leaves the handle open for ever: then the connection just closes. So does a unix
 * socket, for which (as for TLS) node throws.
 */
export function resetConnection(socket: Socket | null): void {
  if (socket === null) return;
  const isSent = socket.writableEnded && socket.writableLength === 0;
  const transport = transportOf(socket);
  if (!isSent && transport?.localPort !== undefined) transport.resetAndDestroy();
  socket.destroy();
}

/**
 * How long the rest of a request is read and dropped behind its reply. The kernel answers bytes that arrive at a closed socket with RST, and
 * clients then drop what they have received (RFC 9112 section 9.6).
 */
const lingerMs = 2_000;

/** Sends the whole body and ends a reply whose request may not have been read to its end. */
function endReply(response: OutgoingReply, body: string): void {
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

/** Sends the last bytes on a socket whose input is no longer parsed. */
export function endSocket(socket: Socket, bytes: string | Buffer): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroySoon());
  socket.resume();
}

/** The headers of a failure in addition to those of its body. */
function failureHeaders({ retryAfterSeconds, allow }: Failure): readonly string[] {
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
  // In one write, because rejections come in crowds. A client that waits for 100 (Continue) gets node's own reply.
  const isPlain = response.req.method !== 'HEAD' && response.expectation === 'none';
  if (isPlain && response.shouldKeepAlive) {
    response.sendWhole(failure.status, headerLines(headers), Buffer.from(body).toString('latin1'));
    return;
  }
  response.writeHead(failure.status, headers);
  endReply(response, body);
}

/** Answers with a text. Nothing may have been sent before, except headers that were set. */
export function sendText(
  response: OutgoingReply,
  text: string,
  contentType = 'text/plain; charset=utf-8',
  status = 200,
): void {
  response.addHeaders(typedHeaders(contentType));
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.writeHead(status);
  response.end(text);
}

/** Ends a reply after an exception: with INTERNAL if nothing has left yet, otherwise by a reset. */
export function endWithFault(response: OutgoingReply, requestId: string, outcome: Outcome): void {
  if (response.destroyed || response.writableEnded) return;
  response.failureCode = 'INTERNAL';
  if (response.headersSent) resetConnection(response.socket);
  else sendFailure(response, internalFailure(outcome), requestId);
}

const requestTooLate =
  'The request did not arrive in time: 20 s for its headers, 60 s for all of it.';

/** The failure for an error of node's parser, or of its timer for requests. */
export function syntaxFailure(error: NodeJS.ErrnoException): Failure {
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ? refusal('REQUEST_TIMEOUT', requestTooLate)
    : refusal('BAD_REQUEST', 'The request is not well-formed HTTP.');
}

/**
 * Answers on a connection that has no request to reply to, and closes it. Returns the number of bytes of the body that were sent.
 * @param hasBody false: the client has asked for the head of a reply
 */
export function endWithFailure(
  socket: Socket,
  failure: Failure,
  requestId: string,
  moreHeaders: readonly string[],
  hasBody: boolean,
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
  const line = `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}\r\n`;
  const sent = hasBody ? body : '';
  endSocket(socket, `${line}${head}Connection: close\r\n\r\n${sent}`);
  return Buffer.byteLength(sent);
}

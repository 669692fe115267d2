// How a reply fails: with a document about the failure, behind the rest of its request, or by a reset of the connection.
import type { Socket } from 'node:net';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines, typedHeaders } from '../encode/head.ts';
import { type Failure, internalFailure, type Outcome } from '../failure/failure.ts';
import { type OutgoingReply, statusLine } from './reply.ts';
import { transportOf } from './tls.ts';

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
  const { req: request } = response;
  const isAllRead = request.complete || request.socket.readableEnded;
  if (response.shouldKeepAlive || isAllRead) {
    response.end(body);
    return;
  }
  response.write(body);
  const timer = setTimeout(() => response.end(), lingerMs);
  response.onceClosed(() => clearTimeout(timer));
  request.drop(() => response.end());
}

/** Sends the last bytes on a socket whose input is no longer parsed. */
export function endSocket(socket: Socket, bytes: string | Buffer): void {
  socket.end(bytes);
  if (socket.readableEnded) return;
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
  // In one write, because rejections come in crowds.
  const isPlain = response.req.method !== 'HEAD' && response.req.expectation === 'none';
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
  const length = String(Buffer.byteLength(text));
  response.writeHead(status, [...typedHeaders(contentType), 'Content-Length', length]);
  response.end(text);
}

/** Ends a reply after an exception: with INTERNAL if nothing has left yet, otherwise by a reset. */
export function endWithFault(response: OutgoingReply, requestId: string, outcome: Outcome): void {
  if (response.destroyed || response.writableEnded) return;
  response.failureCode = 'INTERNAL';
  if (response.headersSent) resetConnection(response.socket);
  else sendFailure(response, internalFailure(outcome), requestId);
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
  const sent = hasBody ? body : '';
  endSocket(socket, `${statusLine(failure.status)}${head}Connection: close\r\n\r\n${sent}`);
  return Buffer.byteLength(sent);
}

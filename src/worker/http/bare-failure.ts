// What is answered to bytes that are no HTTP, where no ServerResponse exists.
// Must not know requests.
import type { Socket } from 'node:net';
import { renderPlainFailure } from '../encode/formats/problem.ts';
import { headerLines, typedHeaders } from '../encode/head.ts';
import { type Failure, refusal } from '../failure/failure.ts';
import { failureHeaders } from './failure-reply.ts';
import { endSocket } from './linger.ts';

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

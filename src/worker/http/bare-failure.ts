// What is answered to bytes that are no HTTP, where no ServerResponse exists.
// Must not know requests.
import type { Socket } from 'node:net';
import { type Failure, failureBody, jsonHeaders, refusal } from './failure.ts';
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
  moreHeaders: readonly string[],
): number {
  const body = failureBody(failure);
  const length = String(Buffer.byteLength(body));
  const headers = [...jsonHeaders, ...moreHeaders, 'Content-Length', length];
  if (failure.retryAfterSeconds !== undefined) {
    headers.push('Retry-After', String(failure.retryAfterSeconds));
  }
  let head = `HTTP/1.1 ${failure.status} ${reasons[failure.status] ?? 'Error'}\r\n`;
  for (let index = 0; index < headers.length; index += 2) {
    head += `${headers[index]}: ${headers[index + 1]}\r\n`;
  }
  endSocket(socket, `${head}Connection: close\r\n\r\n${body}`);
  return Buffer.byteLength(body);
}

// Sends a failure as the format of its path renders it, with the headers that belong to it.
// Must not know why a request failed, only what is said about it.
import type { Failure } from '../encode/failure.ts';
import { headerLines, typedHeaders } from '../encode/head.ts';
import { endReply } from '../http/linger.ts';
import type { OutgoingReply } from '../http/outgoing-reply.ts';

/** What a failure says in headers, beside those of its body. */
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
  // Refusals come in crowds. A client that still waits for leave to send its body gets node's own reply.
  const isPlain = response.req.method !== 'HEAD' && response.expectation === 'none';
  if (isPlain && response.shouldKeepAlive) {
    response.sendWhole(failure.status, headerLines(headers), Buffer.from(body).toString('latin1'));
    return;
  }
  response.writeHead(failure.status, headers);
  endReply(response, body);
}

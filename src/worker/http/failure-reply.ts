// A failure as a whole reply: rendered as the path's format has it, with the headers that belong to it.

import { headerLines, typedHeaders } from '../encode/head.ts';
import { type Failure, internalFailure, type Outcome } from '../failure/failure.ts';
import { endReply } from './linger.ts';
import type { OutgoingReply } from './outgoing-reply.ts';
import { resetConnection } from './reset.ts';

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

// Refusals and losses as HTTP statuses and the JSON that goes with them.
// Must not know why a request failed, only what is said about it.
import { type FailureCode, failures } from '../../shared/failure-codes.ts';
import type { Outcome } from '../execute/outcome.ts';
import { endReply } from './linger.ts';
import { headerLines, type OutgoingReply } from './outgoing-reply.ts';

/** A reply that is no result. `message` is for people: no host, no user, no SQL. */
export type Failure = {
  readonly status: number;
  readonly code: FailureCode;
  readonly message: string;
  readonly outcome: Outcome;
  /** Seconds after which it makes sense to come again. */
  readonly retryAfterSeconds?: number;
  /** What a 405 allows. */
  readonly allow?: string;
};

/** A request that was refused before any SQL. */
export function refusal(code: FailureCode, message: string): Failure {
  return { status: failures[code].status, code, message, outcome: 'not_executed' };
}

/** The headers of every JSON reply but for its length: name, value, name, value. */
export const jsonHeaders: readonly string[] = [
  'Content-Type',
  'application/json; charset=utf-8',
  'X-Content-Type-Options',
  'nosniff',
  'Cache-Control',
  'no-store',
];

/** The body that tells a failure. */
export function failureBody(failure: Failure): string {
  const { message, code, outcome } = failure;
  return JSON.stringify({ ERROR: message, CODE: code, OUTCOME: outcome });
}

/** Answers with a failure. Nothing may have been sent before. */
export function sendFailure(
  response: OutgoingReply,
  failure: Failure,
  moreHeaders: readonly string[] = [],
): void {
  response.failureCode = failure.code;
  const body = failureBody(failure);
  const headers = [...jsonHeaders, 'Content-Length', String(Buffer.byteLength(body))];
  if (failure.retryAfterSeconds !== undefined) {
    headers.push('Retry-After', String(failure.retryAfterSeconds));
  }
  if (failure.allow !== undefined) headers.push('Allow', failure.allow);
  headers.push(...moreHeaders);
  // Refusals come in crowds. A client that still waits for leave to send its body gets node's own reply.
  const isPlain = response.req.method !== 'HEAD' && response.expectation === 'none';
  if (isPlain && response.shouldKeepAlive) {
    response.sendWhole(failure.status, headerLines(headers), Buffer.from(body).toString('latin1'));
    return;
  }
  response.writeHead(failure.status, headers);
  endReply(response, body);
}

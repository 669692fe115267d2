// A request's body where it must be JSON: refused where it is not called so, read to its end, handed over in a turn of its own.
// Must not know what is in it.
import type { IncomingMessage } from 'node:http';
import { readBody } from '../http/body.ts';
import { sendFailure } from '../http/failure.ts';
import { endWithFault } from '../http/internal-fault.ts';
import type { OutgoingReply } from '../http/outgoing-reply.ts';
import type { Observe } from '../observe/observation.ts';
import type { RequestRecord } from '../observe/request-record.ts';
import { refusal } from '../reply/failure.ts';

/** How bodies are read. */
export type BodySettings = { readonly maxRequestBytes: number; readonly observe: Observe };

const otherType = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must be application/json (with curl: --json).',
);

/** Whether the body is called JSON (RFC 8259). */
function isJson(contentType: string | undefined): boolean {
  return /^application\/json[ \t]*(;.*)?$/i.test(contentType ?? '');
}

/** Reads a body that must be called JSON; what it is called otherwise is answered here, and what is too long. */
export function readJsonBody(
  request: IncomingMessage,
  response: OutgoingReply,
  record: RequestRecord,
  settings: BodySettings,
  take: (body: Buffer) => void,
): void {
  if (isJson(request.headers['content-type'])) {
    readAnyBody(request, response, record, settings, take);
    return;
  }
  response.shouldKeepAlive = false;
  sendFailure(response, otherType, record.requestId);
}

/** The same whatever the body is called. */
export function readAnyBody(
  request: IncomingMessage,
  response: OutgoingReply,
  { requestId, traceId }: RequestRecord,
  { maxRequestBytes, observe }: BodySettings,
  take: (body: Buffer) => void,
): void {
  readBody(request, response, maxRequestBytes, {
    complete: (body) => {
      // A turn of its own: what is thrown here does not come to whoever handed the request over.
      try {
        take(body);
      } catch (cause) {
        observe({ kind: 'exception', cause, requestId, traceId });
        endWithFault(response, requestId, 'not_executed');
      }
    },
    failed: (failure) => {
      response.shouldKeepAlive = false;
      sendFailure(response, failure, requestId);
    },
  });
}

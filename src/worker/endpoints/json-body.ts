// A request's body where it must be JSON: refused where it is not called so, read to its end, handed over in a turn of its own.
// Must not know what is in it.

import { isUtf8 } from 'node:buffer';
import { longFrom, type Pieces } from '../../shared/pieces.ts';
import { refusal } from '../failure/failure.ts';
import { endWithFault, type OutgoingReply, sendFailure } from '../http/reply.ts';
import { type IncomingRequest, readBody } from '../http/request.ts';
import type { RequestRecord } from '../observe/observation.ts';
import { type ParsedObject, parseObjectInPieces } from './json-text.ts';
import { type Work, workThen } from './long-requests.ts';

/** How bodies are read. */
export type BodySettings = Work & {
  readonly maxRequestBytes: number;
  /** Whether a byte order mark may stand before the JSON. */
  readonly toleratesMark?: boolean;
};

/** Takes a body; `parsed` is what a long one says, null: it is short, and has not been looked at. */
export type TakeBody = (body: Buffer, parsed: ParsedObject | null) => void;

const otherType = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must be application/json (with curl: --json).',
);

const notUtf8: ParsedObject = {
  ok: false,
  code: 'BAD_ENCODING',
  message: 'the body is not UTF-8',
};

function* parseBodyInPieces(body: Buffer, toleratesMark: boolean): Pieces<ParsedObject> {
  if (!isUtf8(body)) return notUtf8;
  const isMarked = toleratesMark && body.subarray(0, 3).equals(byteOrderMark);
  const text = body.toString('utf8', isMarked ? 3 : 0);
  yield;
  return yield* parseObjectInPieces(text);
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Whether the body is called JSON (RFC 8259). */
function isJson(contentType: string | undefined): boolean {
  return /^application\/json[ \t]*(;.*)?$/i.test(contentType ?? '');
}

/** Reads a body that must be called JSON; what it is called otherwise is answered here, and what is too long. */
export function readJsonBody(
  request: IncomingRequest,
  response: OutgoingReply,
  record: RequestRecord,
  settings: BodySettings,
  take: TakeBody,
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
  request: IncomingRequest,
  response: OutgoingReply,
  record: RequestRecord,
  settings: BodySettings,
  take: TakeBody,
): void {
  const { requestId, traceId } = record;
  const { maxRequestBytes, observe, toleratesMark = false } = settings;
  readBody(request, response, maxRequestBytes, {
    complete: (body) => {
      // A turn of its own: what is thrown here does not come to whoever handed the request over.
      try {
        if (body.length <= longFrom) take(body, null);
        else {
          const asker = { response, record };
          const parsing = parseBodyInPieces(body, toleratesMark);
          workThen(settings, asker, parsing, (parsed) => take(body, parsed));
        }
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

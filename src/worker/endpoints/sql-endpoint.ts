// The path of every request that may run SQL: read its body, decide what to do, do it.
// A long text is decided in pieces, so that other requests run in between. A short one is decided at once.

import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { Config } from '../../shared/config/config.ts';
import { allAtOnce, longFrom, type Pieces } from '../../shared/pieces.ts';
import { jsonType } from '../encode/head.ts';
import { type Failure, type Refused, refusal } from '../failure/failure.ts';
import { endWithFault, type OutgoingReply, sendFailure, sendText } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import { type RequestHead, readBody } from '../http/request.ts';
import type { Observe, RequestRecord } from '../observe/observation.ts';
import { type RunDecision, startExchange } from '../request/exchange.ts';
import type { LongWork } from '../request/long-work.ts';
import type { Handler } from '../request/router.ts';
import { type HeldRequests, type PassOn, passOn } from './held-requests.ts';
import { type ParsedObject, parseObjectInPieces } from './json-text.ts';

/** One request, read to its end. */
export type Call = {
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  readonly head: RequestHead;
  /** Empty if there is none, or if the URL says what is asked for. */
  readonly body: Buffer;
  /** It is decided in pieces. */
  readonly isLong: boolean;
};

/** What is done with a request: statements are run, a text is its reply, another worker gets it, or it fails. */
export type Decision = Refused | RunDecision | Reply | PassOn;

/** A JSON text that is the whole reply. */
export type Reply = { readonly ok: true; readonly kind: 'reply'; readonly json: string };

type Source = 'json' | 'url' | 'ignored body';

/** What differs between endpoints. */
export type SqlEndpoint = {
  /** Refuses a request for its head, before its body is read; null: it is read. */
  readonly check: (request: IncomingRequest) => Failure | null;
  /** What says what is asked for: a body of JSON (also if this is missing), or the URL. `ignored body`: the URL, with a body that is read. */
  readonly sourceOf?: (request: IncomingRequest, head: RequestHead) => Source;
  /** Decides what is done with a request. */
  readonly decide: (call: Call) => Pieces<Decision>;
};

/** What all endpoints of a worker use. */
export type EndpointContext = {
  readonly config: Config;
  readonly observe: Observe;
  readonly longWork: LongWork;
  readonly held: HeldRequests;
};

const otherType = refusal(
  'UNSUPPORTED_MEDIA_TYPE',
  'The body must be application/json (with curl: --json).',
);

const noBody = Buffer.alloc(0);

/** Creates the handler of an endpoint. */
export function createSqlHandler(context: EndpointContext, endpoint: SqlEndpoint): Handler {
  return (request, response, head, record) => {
    const source = endpoint.sourceOf?.(request, head) ?? 'json';
    const refused = endpoint.check(request);
    if (refused !== null) refuseUnread(response, record, refused);
    else if (source === 'url')
      answer(context, endpoint, callOf(request, response, record, head, null));
    else if (source === 'json' && !isJson(request.headers))
      refuseUnread(response, record, otherType);
    else {
      readBody(request, response, context.config.maxRequestBytes, {
        complete: (body) => {
          const said = source === 'json' ? body : null;
          answer(context, endpoint, callOf(request, response, record, head, said));
        },
        failed: (failure) => refuseUnread(response, record, failure),
      });
    }
  };
}

/** Refuses a request of which the body is not, or not wholly, read: its connection cannot be used again. */
function refuseUnread(response: OutgoingReply, record: RequestRecord, failure: Failure): void {
  response.shouldKeepAlive = false;
  sendFailure(response, failure, record.requestId);
}

function callOf(
  request: IncomingRequest,
  response: OutgoingReply,
  record: RequestRecord,
  head: RequestHead,
  body: Buffer | null,
): Call {
  const isLong = (body ?? head.query ?? '').length > longFrom;
  return { request, response, record, head, body: body ?? noBody, isLong };
}

/** What a request throws ends this request alone. Nothing was executed: an exchange handles its own exceptions. */
function answer(context: EndpointContext, endpoint: SqlEndpoint, call: Call): void {
  try {
    const deciding = endpoint.decide(call);
    if (call.isLong) void answerLater(context, deciding, call);
    else carryOut(context, allAtOnce(deciding), call);
  } catch (cause) {
    endFaulted(context, call, cause);
  }
}

async function answerLater(
  context: EndpointContext,
  deciding: Pieces<Decision>,
  call: Call,
): Promise<void> {
  const from = performance.now();
  try {
    const decision = await context.longWork.do(deciding);
    call.record.workedMs = performance.now() - from;
    if (!call.response.destroyed) carryOut(context, decision, call);
  } catch (cause) {
    endFaulted(context, call, cause);
  }
}

function endFaulted(
  { observe }: EndpointContext,
  { response, record }: Call,
  cause: unknown,
): void {
  const { requestId, traceId } = record;
  observe({ kind: 'exception', cause, requestId, traceId });
  endWithFault(response, requestId, 'not_executed');
}

function carryOut(context: EndpointContext, decision: Decision, call: Call): void {
  const { response, record } = call;
  if (!decision.ok) {
    sendFailure(response, decision.failure, record.requestId);
    return;
  }
  switch (decision.kind) {
    case 'run':
      startExchange(decision, response, record);
      break;
    case 'reply':
      response.setHeader('X-Request-ID', record.requestId);
      sendText(response, decision.json, jsonType);
      break;
    case 'pass on':
      passOn(context.held, decision, call, (next) => carryOut(context, next, call));
      break;
    default:
      decision satisfies never;
  }
}

/** Whether the body is called JSON (RFC 8259). */
function isJson({ 'content-type': contentType = '' }: IncomingHttpHeaders): boolean {
  return /^application\/json[ \t]*(;.*)?$/i.test(contentType);
}

const notUtf8: ParsedObject = {
  ok: false,
  code: 'BAD_ENCODING',
  message: 'the body is not UTF-8',
};

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Parses the body of a long request; null: it is short, and is parsed with what it means. */
export function* parseLongBody(
  { body, isLong }: Call,
  toleratesMark = false,
): Pieces<ParsedObject | null> {
  if (!isLong) return null;
  if (!isUtf8(body)) return notUtf8;
  const isMarked = toleratesMark && body.subarray(0, 3).equals(byteOrderMark);
  const text = body.toString('utf8', isMarked ? 3 : 0);
  yield;
  return yield* parseObjectInPieces(text);
}

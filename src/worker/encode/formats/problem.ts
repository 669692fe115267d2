// Failures as JSON objects: plain for /db, and problem details (RFC 9457) for /v1, for the gateway's own and for MySQL's.
import {
  type FailureCode,
  failures,
  type MysqlFailureFacts,
} from '../../../shared/failure-codes.ts';
import { errorName } from '../../../shared/mysql/error-names.ts';
import { type AnyFailure, appliedNothing, type RenderFailure } from '../../failure/failure.ts';
import { createReplyHead, jsonType, type ReplyHead } from '../head.ts';
import { writeBytes } from '../text.ts';
import type { ReplyWriter } from '../writer.ts';

/** RFC 9457, section 3. */
const problemType = 'application/problem+json';

/** The object of /db, and of every path without a format of its own. */
export const renderPlainFailure: RenderFailure = ({ message, code, outcome, missing }) => ({
  contentType: jsonType,
  body: JSON.stringify({ ERROR: message, CODE: code, MISSING: missing, OUTCOME: outcome }),
});

/** The object of /v1. */
export const renderProblem: RenderFailure = (failure, requestId) => ({
  contentType: problemType,
  body: problemJson(failure, requestId),
});

/** JSON-RPC 2.0, section 5.1: "Parse error" and "Invalid Request". */
const rpcCodes = { parseError: -32_700, invalidRequest: -32_600 } as const;

/** The object of /mcp, for requests that its protocol does not see. The message's id is not known. */
export const renderRpcFailure: RenderFailure = (
  { message, code, outcome, missing },
  requestId,
) => ({
  contentType: jsonType,
  body: JSON.stringify({
    jsonrpc: '2.0',
    error: {
      code: code === 'BAD_JSON' ? rpcCodes.parseError : rpcCodes.invalidRequest,
      message,
      data: { code, missing, outcome, request_id: requestId },
    },
    id: null,
  }),
});

/** The head of a reply that is a problem. */
export function problemHead({ status, retryAfterSeconds }: AnyFailure): ReplyHead {
  const more = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
  return createReplyHead(status, problemType, more);
}

/** Makes a problem the whole reply; nothing of it may have left. */
export function writeProblem(out: ReplyWriter, failure: AnyFailure, requestId: string): void {
  out.head = problemHead(failure);
  writeBytes(out, Buffer.from(problemJson(failure, requestId)));
}

/** The same failure of a request with one statement: a problem gives no number then. */
export function withoutPlace({ place: _, ...failure }: AnyFailure): AnyFailure {
  return failure;
}

/** A problem's object as JSON text, without line breaks: in a stream of lines it is the last one. */
export function problemJson(failure: AnyFailure, requestId: string): string {
  const { status, message, outcome, place } = failure;
  const error = failure.code === null && failure.shownCode === undefined ? failure.error : null;
  return JSON.stringify({
    type: 'about:blank',
    title: (titles as Readonly<Record<number, string>>)[status] ?? 'Refused',
    status,
    detail: message,
    hint: failure.code === null ? failure.hint : undefined,
    code: failure.shownCode ?? failure.code ?? errorName(failure.error.errno),
    missing: failure.missing,
    parameter: failure.parameter,
    errno: error?.errno,
    sqlstate: error?.sqlState,
    retryable: isRetryable(failure),
    outcome,
    request_id: requestId,
    statement: place?.statement,
    offset: place?.offset,
  });
}

/** Whether the same request may be sent again. Among the gateway's own failures, only those of reads are `failed`. */
export function isRetryable({ code, outcome, mayRepeat }: AnyFailure): boolean {
  if (mayRepeat !== undefined) return mayRepeat;
  const repeat = code === null ? 'changed' : failures[code].repeat;
  return (repeat === 'yes' || repeat === 'outcome') && appliedNothing[outcome];
}

type SentStatus<Facts> = Facts extends { readonly sentStatus: infer Status } ? Status : never;

/** All that a failure can be answered with. */
type FailureStatus =
  | (typeof failures)[FailureCode]['status']
  | SentStatus<(typeof failures)[FailureCode]>
  | MysqlFailureFacts['status'];

/** The phrases of IANA's registry, which RFC 9457 wants for about:blank; 499 is nginx's, and only logs have it. */
const titles = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  413: 'Content Too Large',
  414: 'URI Too Long',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  499: 'Client Closed Request',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
} as const satisfies Readonly<Record<FailureStatus, string>>;

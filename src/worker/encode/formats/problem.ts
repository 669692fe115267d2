// A failure as new clients are told it: an object of RFC 9457 with a real status, for the gateway's own and for MySQL's.
// Must not know how a run ended, nor how the reply leaves.
import {
  type FailureCode,
  type FailureFacts,
  failures,
  type MysqlFailure,
  type MysqlFailureFacts,
  mysqlFailures,
  otherMysqlFailure,
} from '../../../shared/failure-codes.ts';
import { errorName } from '../../../shared/mysql/error-names.ts';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { Failure, Outcome, Place, RenderFailure } from '../../failure/failure.ts';
import { createReplyHead, jsonType, type ReplyHead } from '../head.ts';

/** RFC 9457, section 3. */
const problemType = 'application/problem+json';

/** What a problem's object tells, and the status that it is answered with where the reply has not begun. */
export type Problem = {
  readonly status: number;
  /** For people. MySQL's own message, or ours, which names no host, user or SQL. */
  readonly detail: string;
  /** For programs: MySQL's name of the error, or a code of our own. */
  readonly code: string;
  /** MySQL's number and state, where the error is MySQL's. */
  readonly server?: { readonly errno: number; readonly sqlState: string };
  /** Whether the same request may be sent again without harm, and may succeed then. */
  readonly retryable: boolean;
  readonly outcome: Outcome;
  /** For Retry-After: every 503 has it. */
  readonly retryAfterSeconds?: number;
  readonly place?: Place;
};

/** What is known of a request of which MySQL refused a statement. */
export type RefusedRequest = {
  /** Of the whole request. Of a CALL that may have committed on its own, `failed` claims too much. */
  readonly outcome: Outcome;
  /** Whether it was to run READ ONLY, by its own wish or the section's. */
  readonly isReadOnly: boolean;
  /** Whether it did nothing but read, so that no end of it can have changed anything. */
  readonly isRead: boolean;
  /** Where several statements were sent: which one. */
  readonly place?: Place;
};

/** The object of /db, and of every path without a format of its own. */
export const renderPlainFailure: RenderFailure = ({ message, code, outcome }) => ({
  contentType: jsonType,
  body: JSON.stringify({ ERROR: message, CODE: code, OUTCOME: outcome }),
});

/** The gateway's own failures. */
export const renderProblem: RenderFailure = (failure, requestId) =>
  renderAsProblem(describeFailed(failure), requestId);

/** A problem as the whole of a reply. */
export function renderAsProblem(
  problem: Problem,
  requestId: string,
): ReturnType<typeof renderProblem> {
  return { contentType: problemType, body: problemJson(problem, requestId) };
}

/** The head of a reply that is a problem. */
export function problemHead({ status, retryAfterSeconds }: Problem): ReplyHead {
  const more = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
  return createReplyHead(status, problemType, more);
}

/** A problem's object as JSON text, without line breaks: in a stream of lines it stands in the last one. */
export function problemJson(problem: Problem, requestId: string): string {
  const { status, detail, code, server, retryable, outcome, place } = problem;
  return JSON.stringify({
    type: 'about:blank',
    title: (titles as Readonly<Record<number, string>>)[status],
    status,
    detail,
    code,
    errno: server?.errno,
    sqlstate: server?.sqlState,
    retryable,
    outcome,
    request_id: requestId,
    statement: place?.statement,
    offset: place?.offset,
  });
}

/** What is told of a failure of the gateway's own. */
export function describeFailed(failure: Failure): Problem {
  const { status, code, message, outcome, retryAfterSeconds, place } = failure;
  return {
    status,
    detail: message,
    code,
    retryable: failure.mayRepeat === true || mayRepeat(failures[code], outcome),
    outcome,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    ...(place === undefined ? {} : { place }),
  };
}

/** Of our own failures `failed` is said of nothing but reads. */
function mayRepeat({ repeat }: FailureFacts, outcome: Outcome): boolean {
  return (repeat === 'yes' || repeat === 'outcome') && appliedNothing[outcome];
}

/** What is told of an error that MySQL reported: its status and whether to repeat are those of the table. */
export function describeRefused(error: ServerError, request: RefusedRequest): Problem {
  const { errno, sqlState, message } = error;
  const { outcome, isRead, place } = request;
  const { status, repeat } = findFacts(error, request);
  const isHarmless = repeat === 'yes' || isRead || outcome !== 'failed';
  return {
    status,
    detail: message,
    code: errorName(errno),
    server: { errno, sqlState },
    retryable: repeat !== 'no' && appliedNothing[outcome] && isHarmless,
    outcome,
    ...(status === 503 ? { retryAfterSeconds: 1 } : {}),
    ...(place === undefined ? {} : { place }),
  };
}

function findFacts(error: ServerError, request: RefusedRequest): MysqlFailureFacts {
  const found = mysqlFailures.find(
    ({ errno, when }) => errno === error.errno && isMet(when, error, request),
  );
  return found ?? otherMysqlFailure;
}

function isMet(
  when: MysqlFailure['when'],
  { message }: ServerError,
  request: RefusedRequest,
): boolean {
  switch (when) {
    case undefined:
      return true;
    case 'the request is read-only':
      return request.isReadOnly;
    case 'the server is read-only':
      return readOnlyOption.test(message);
    case 'a group switches its primary':
      return message.includes(primarySwitch);
    default:
      return when satisfies never;
  }
}

/** 1290 names the option that forbids the statement, in every language; --secure-file-priv is another one. */
const readOnlyOption = /read[-_]only/;

/** MySQL's 4094 names the function, in every language; MariaDB has the number for something else. */
const primarySwitch = 'group_replication_set_as_primary';

/** What an outcome says of the data, but for tables without transactions after `failed`. */
const appliedNothing: Readonly<Record<Outcome, boolean>> = {
  not_executed: true,
  failed: true,
  rolled_back: true,
  partial: false,
  unknown: false,
};

type SentStatus<Facts> = Facts extends { readonly sentStatus: infer Status } ? Status : never;

/** All that a failure can be answered with. */
type FailureStatus =
  | (typeof failures)[FailureCode]['status']
  | SentStatus<(typeof failures)[FailureCode]>
  | MysqlFailureFacts['status'];

/** The phrases of IANA's registry, which RFC 9457 wants for about:blank; 499 is nginx's, and nobody is told. */
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
  431: 'Request Header Fields Too Large',
  499: 'Client Closed Request',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
} as const satisfies Readonly<Record<FailureStatus, string>>;

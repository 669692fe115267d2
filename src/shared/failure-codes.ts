// Every CODE that a request can be refused or ended with, and what operators call it: the table that metrics count by.
// Must not know when which is said.

/** The codes, in the order of a request's way through the gateway. */
export const failureCodes = [
  'TOO_MANY_CONNECTIONS',
  'TOO_MANY_BYTES',
  'REQUEST_TIMEOUT',
  'HEADERS_TOO_LARGE',
  'URL_TOO_LONG',
  'BAD_REQUEST',
  'EXPECTATION_FAILED',
  'UNKNOWN_HOST',
  'CROSS_SITE',
  'UNAUTHORIZED',
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'UNSUPPORTED_MEDIA_TYPE',
  'TRANSFER_CODING',
  'BODY_TOO_LARGE',
  'BAD_ENCODING',
  'BAD_JSON',
  'BAD_KEY',
  'NO_SQL',
  'WRONG_SERVER',
  'MULTI_STATEMENTS_OFF',
  'READ_ONLY',
  'PARAMS_COUNT',
  'PARAMS_NAME',
  'PARAMS_SEVERAL',
  'PARAMS_TEXT',
  'PARAMS_VALUE',
  'STATEMENT_TOO_LARGE',
  'QUEUE_FULL',
  'DEADLINE_WAITING',
  'DATABASE_UNREACHABLE',
  'DEADLINE_RUNNING',
  'CONNECTION_LOST',
  'RESULT_TOO_LARGE',
  'STALLED',
  'CLIENT_GONE',
  'STOPPING',
  'INTERNAL',
  'NO_METRICS',
] as const;

/** One of them; each is promised to clients, so none is renamed. */
export type FailureCode = (typeof failureCodes)[number];

/** Why a worker's database does not serve, as /readyz and a gauge tell it. */
export const unreadyCodes = [
  'STARTING',
  'STOPPING',
  'DATABASE_UNREACHABLE',
  'DATABASE_REFUSES',
  'DATABASE_UNUSABLE',
  'DATABASE_TLS',
  'DATABASE_SILENT',
  'GALERA_NOT_READY',
] as const;

export type UnreadyCode = (typeof unreadyCodes)[number];

/** What becomes of a database request: answered well, answered with an error of MySQL's, or as its OUTCOME says. */
export const outcomes = [
  'ok',
  'error',
  'not_executed',
  'failed',
  'partial',
  'rolled_back',
  'unknown',
] as const;

export type RequestOutcome = (typeof outcomes)[number];

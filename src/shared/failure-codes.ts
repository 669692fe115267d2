// Every CODE that a request can be refused or ended with, and every error of MySQL's that has a status of its own: status,
// meaning, whether to repeat. Replies, metrics and docs/reference/errors.md come from it.
/**
 * When a request may be repeated. `yes`: nothing was executed, after Retry-After. `changed`: nothing was executed, and the
 * same request would be refused again. `outcome`: the reply's OUTCOME says. `pointless`: it says whether something was
 * executed, and the same request would end in the same way. `unreported`: no client is left that could repeat it.
 */
export type Repetition = 'yes' | 'changed' | 'outcome' | 'pointless' | 'unreported';

/** The promises of a code. `meaning` is a clause for people. */
export type FailureFacts = {
  /** The status of the reply; if there is none, that of the access log. */
  readonly status: number;
  /** The status once statements were sent, if that differs. */
  readonly sentStatus?: number;
  readonly meaning: string;
  readonly repeat: Repetition;
};

/** The codes, in the order of a request's way through the gateway. Each is promised to clients, so none is renamed. */
export const failures = {
  TOO_MANY_CONNECTIONS: {
    status: 503,
    meaning: 'as many clients are connected as the worker accepts; health and metrics still answer',
    repeat: 'yes',
  },
  TOO_MANY_BYTES: {
    status: 503,
    meaning:
      'requests that have not arrived in full, or wait to be decoded, use all the memory that they may',
    repeat: 'yes',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    meaning: 'the request did not arrive in time: 20 s for its headers, 60 s for all of it',
    repeat: 'yes',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    meaning: 'more than 100 headers, or more than 16 KiB of them',
    repeat: 'changed',
  },
  URL_TOO_LONG: {
    status: 414,
    meaning: 'a URL longer than `max_request_bytes`; long SQL goes into a POST body',
    repeat: 'changed',
  },
  BAD_REQUEST: {
    status: 400,
    meaning:
      'not well-formed HTTP/1.0 or 1.1: request line, Host, a header, the framing of the body; a GET with a body',
    repeat: 'changed',
  },
  UNKNOWN_EXPECTATION: {
    status: 417,
    meaning: '`Expect` with something other than `100-continue`',
    repeat: 'changed',
  },
  UNKNOWN_HOST: {
    status: 421,
    meaning: 'a `Host` that is not served here (`allow_hosts`)',
    repeat: 'changed',
  },
  CROSS_SITE: {
    status: 403,
    meaning:
      'a browser sends the request for a page of another site (`allow_origins`), or prefetches',
    repeat: 'changed',
  },
  UNAUTHORIZED: {
    status: 401,
    meaning: 'no valid credentials: a token that is unknown, malformed or expired, or none',
    repeat: 'changed',
  },
  AUTH_BUSY: {
    status: 503,
    meaning: 'too many JSON Web Tokens that the worker has not seen before are being verified',
    repeat: 'yes',
  },
  NOT_FOUND: { status: 404, meaning: 'nothing is served at that path', repeat: 'changed' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    meaning: 'the path does not take that method; `Allow` says which ones it takes',
    repeat: 'changed',
  },
  FORBIDDEN: {
    status: 403,
    meaning:
      "the client's `allow` lacks a permission that the request needs, which `missing` names, or its `sections` lack the section",
    repeat: 'changed',
  },
  NOT_ACCEPTABLE: {
    status: 406,
    meaning: '`Accept` names no format that the reply can have',
    repeat: 'changed',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    meaning: 'a body that is not `application/json`, or that is compressed',
    repeat: 'changed',
  },
  TRANSFER_CODING: {
    status: 400,
    meaning: 'a transfer coding other than chunked',
    repeat: 'changed',
  },
  BODY_TOO_LARGE: {
    status: 413,
    meaning: 'a body longer than `max_request_bytes`',
    repeat: 'changed',
  },
  BAD_ENCODING: { status: 400, meaning: 'a body that is not UTF-8', repeat: 'changed' },
  BAD_JSON: {
    status: 400,
    meaning: 'not JSON, not an object, or nested deeper than 64 levels',
    repeat: 'changed',
  },
  BAD_KEY: {
    status: 400,
    meaning: 'a key of the request has a value that it cannot have; the message names it',
    repeat: 'changed',
  },
  UNKNOWN_FIELD: {
    status: 400,
    meaning: '`/v1`: an unknown field; the message names the known ones',
    repeat: 'changed',
  },
  NO_SQL: {
    status: 400,
    meaning: 'the request has no SQL, and asks for nothing else',
    repeat: 'changed',
  },
  WRONG_SERVER: {
    status: 400,
    meaning: '`SERVER` or `section` names none of the sections that are served',
    repeat: 'changed',
  },
  IDEMPOTENCY_OFF: {
    status: 400,
    meaning:
      '`Idempotency-Key`: the section has no `idempotency_table` in which keys and replies could be kept',
    repeat: 'changed',
  },
  IDEMPOTENCY_KEY: {
    status: 400,
    meaning: 'an `Idempotency-Key` that is not 1 to 255 visible characters',
    repeat: 'changed',
  },
  IDEMPOTENCY_UNFIT: {
    status: 400,
    meaning:
      'an `Idempotency-Key` on `/db`, or with a request that writes nothing, is undone at the end, or is not one transaction',
    repeat: 'changed',
  },
  KEY_REQUIRED: {
    status: 400,
    meaning: 'a named statement with `-- key: required` is called without an `Idempotency-Key`',
    repeat: 'changed',
  },
  PARAMETER: {
    status: 400,
    meaning:
      'a parameter of a named statement is missing, unknown, or has a value that it cannot have; the message names it',
    repeat: 'changed',
  },
  CLAIMS: {
    status: 400,
    meaning: '`Dbhttpd-Claims` is not one JSON object',
    repeat: 'changed',
  },
  CLAIM_FORBIDDEN: {
    status: 403,
    meaning:
      '`Dbhttpd-Claims` states a claim that `may_claim` of the client does not list, or that its JSON Web Token has',
    repeat: 'changed',
  },
  CLAIM_MISSING: {
    status: 403,
    meaning: 'a named statement takes a claim that the credentials do not have',
    repeat: 'changed',
  },
  CLAIM_INVALID: {
    status: 403,
    meaning: 'a named statement takes a claim, and its value in the credentials has the wrong type',
    repeat: 'changed',
  },
  ENUM_UNKNOWN: {
    status: 503,
    meaning:
      'the values of an `enum of` are not known yet, because the database has not been reached',
    repeat: 'yes',
  },
  MULTI_STATEMENTS_OFF: {
    status: 400,
    meaning: 'several statements, and `multi_statements` is off',
    repeat: 'changed',
  },
  SEVERAL_STATEMENTS: {
    status: 400,
    meaning: 'several statements where only one is allowed; `offset` says where the second begins',
    repeat: 'changed',
  },
  NOT_IN_TRANSACTION: {
    status: 400,
    meaning:
      'a statement that may end its transaction, or a text that servers read differently; `statement` says which',
    repeat: 'changed',
  },
  NOT_UNDOABLE: {
    status: 400,
    sentStatus: 409,
    meaning:
      '`dry_run` or `max_affected` with a statement that a ROLLBACK may not undo; it is not run (409: the ROLLBACK itself reported that)',
    repeat: 'changed',
  },
  SESSION_STATEMENT: {
    status: 400,
    meaning:
      '`/v1/query`: a statement that only affects its session, which ends with the request; the message names what works',
    repeat: 'changed',
  },
  READ_ONLY: {
    status: 403,
    meaning: 'a statement that does more than read, under `READ_ONLY` or `read_only`',
    repeat: 'changed',
  },
  CALL_REFUSED: {
    status: 403,
    meaning:
      "the tool `query` of `/mcp` runs no statement that calls LOAD_FILE, SLEEP or BENCHMARK, or that asks for another connection's plan",
    repeat: 'changed',
  },
  PARAMS_COUNT: {
    status: 400,
    meaning: 'the statement has more or fewer `?` than PARAMS has values',
    repeat: 'changed',
  },
  PARAMS_NAME: {
    status: 400,
    meaning: 'a `:name` without a value in PARAMS, or a value that is not used',
    repeat: 'changed',
  },
  PARAMS_SEVERAL: { status: 400, meaning: 'PARAMS with several statements', repeat: 'changed' },
  PARAMS_TEXT: {
    status: 400,
    meaning:
      'with PARAMS, SQL with a literal or comment that ends elsewhere under another sql_mode or on another server, or that is not closed',
    repeat: 'changed',
  },
  PARAMS_VALUE: {
    status: 400,
    meaning:
      'a value that cannot be bound: an unknown type, half a character, bytes that are not base64, an array outside of `IN (?)`, a string alone behind ORDER BY',
    repeat: 'changed',
  },
  TOO_MANY_PARAMETERS: {
    status: 413,
    meaning:
      'a statement with more than 65,535 parameters, or an object of the request with more members',
    repeat: 'changed',
  },
  STATEMENT_TOO_LARGE: {
    status: 413,
    meaning: "with its parameters the statement would be longer than MySQL's `max_allowed_packet`",
    repeat: 'changed',
  },
  CLIENT_BUSY: {
    status: 429,
    sentStatus: 502,
    meaning: 'as many requests of the client are waiting as its own `queue` allows',
    repeat: 'yes',
  },
  QUEUE_FULL: {
    status: 503,
    sentStatus: 502,
    meaning:
      'as many requests as `queue` allows are waiting for a connection; this was the newest of the client with the longest queue for its share',
    repeat: 'yes',
  },
  WAITED_TOO_LONG: {
    status: 503,
    sentStatus: 502,
    meaning:
      'no connection came free within `max_wait` or a quarter of the deadline, or so many requests wait that none would come free in time',
    repeat: 'yes',
  },
  DEADLINE_WAITING: {
    status: 503,
    meaning:
      'the deadline passed before the request could begin: it was still being decoded, its connection was still being opened, or it still waited for another one of its transaction',
    repeat: 'yes',
  },
  DATABASE_UNREACHABLE: {
    status: 503,
    sentStatus: 502,
    meaning:
      'no connection to the database could be opened: its name, the network, TLS, or no connection left; `/readyz` and the log say why',
    repeat: 'yes',
  },
  DATABASE_REFUSED: {
    status: 503,
    sentStatus: 502,
    meaning:
      "the database refuses the gateway's login: password, account, rights, or a statement of `init_sql`; `/readyz` has its `errno`, the log its words",
    repeat: 'yes',
  },
  NO_PRIMARY: {
    status: 503,
    sentStatus: 502,
    meaning:
      'none of the servers of the section takes writes (or, for a read, serves it); `/readyz` and the log say why',
    repeat: 'yes',
  },
  TWO_PRIMARIES: {
    status: 503,
    sentStatus: 502,
    meaning:
      'several servers accept writes, and their histories differ: the gateway writes to none until an operator says which one is the primary',
    repeat: 'yes',
  },
  IDEMPOTENCY_TABLE: {
    status: 503,
    sentStatus: 502,
    meaning: '`idempotency_table` is missing or unusable; the log and `--check` say why',
    repeat: 'yes',
  },
  TOKEN_LOST: {
    status: 409,
    meaning:
      'what an earlier reply showed (`X-Consistency-Token`) was lost in a failover; without the token the request is answered',
    repeat: 'changed',
  },
  CONSISTENCY_TOKEN: {
    status: 400,
    meaning: '`X-Consistency-Token` is not a token of this gateway, or is signed with another key',
    repeat: 'changed',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    meaning: 'the `Idempotency-Key` was used before, for another request',
    repeat: 'changed',
  },
  DEADLINE_RUNNING: {
    status: 504,
    meaning: 'the deadline passed while the statement was running; it was killed',
    repeat: 'outcome',
  },
  KILLED: {
    status: 504,
    meaning:
      'an operator or the client ended the request, with `DELETE /v1/requests/{id}` or in the console',
    repeat: 'outcome',
  },
  CONNECTION_LOST: {
    status: 502,
    meaning:
      "the connection was lost after the statement was sent, or the server's answer broke the protocol",
    repeat: 'outcome',
  },
  COMMIT_RUNNING: {
    status: 502,
    meaning:
      'the client asked to commit or roll back a held transaction while a COMMIT of it runs; asking again tells the outcome',
    repeat: 'outcome',
  },
  DUPLICATE_COLUMNS: {
    status: 400,
    meaning:
      '`"rows":"object"`, and columns of the result have the same name; the message names them',
    repeat: 'pointless',
  },
  SEVERAL_RESULTS: {
    status: 422,
    meaning: 'a driver asks for more than one result set, which its protocol cannot carry',
    repeat: 'pointless',
  },
  EXPECTATION_FAILED: {
    status: 409,
    meaning: 'a statement did not do what its `expect` says; `statement` says which',
    repeat: 'pointless',
  },
  NO_ROW: {
    status: 404,
    meaning: 'a named statement of the kind `:one` has found no row',
    repeat: 'pointless',
  },
  NOT_ONE_ROW: {
    status: 422,
    meaning: 'a named statement of the kind `:one` has found more than one row',
    repeat: 'pointless',
  },
  TOO_MANY_ROWS: {
    status: 409,
    meaning: 'a write touched more rows than `max_affected`',
    repeat: 'pointless',
  },
  TRANSACTION_ENDED: {
    status: 409,
    meaning:
      'the transaction of the request is over, or the token names none; the message gives the reason ' +
      '(in a batch, `statement` says which statement has ended it)',
    repeat: 'pointless',
  },
  RESULT_TOO_LARGE: {
    status: 422,
    meaning: 'the result is larger than `max_result_bytes`, or than 16 MiB if it must be held back',
    repeat: 'pointless',
  },
  TOO_MANY_COLUMNS: {
    status: 422,
    meaning:
      'the result has more columns than `max_columns`, or 4 MiB of definitions; no row was read',
    repeat: 'pointless',
  },
  STALLED: {
    status: 499,
    meaning:
      'the client took nothing of the reply for too long, or too little while requests waited; the worker resets the connection',
    repeat: 'unreported',
  },
  CLIENT_GONE: {
    status: 499,
    meaning: 'the client went away before its reply was complete',
    repeat: 'unreported',
  },
  STOPPING: {
    status: 503,
    sentStatus: 502,
    meaning: 'the gateway is stopping',
    repeat: 'yes',
  },
  INTERNAL: {
    status: 500,
    meaning:
      'an internal error of the gateway, which its log describes; other requests are not affected',
    repeat: 'outcome',
  },
  NO_METRICS: {
    status: 503,
    meaning:
      '`/metrics`, `/v1/stats`, `/v1/requests`, `/v1/statements`: the supervisor did not answer in time',
    repeat: 'yes',
  },
} as const satisfies Readonly<Record<string, FailureFacts>>;

/** One of them. */
export type FailureCode = keyof typeof failures;

/** All of them, in the same order. */
export const failureCodes = Object.keys(failures) as readonly FailureCode[];

/**
 * When a request that MySQL refused may be repeated as it is. `yes`: the statement was not begun or is undone, and may
 * succeed another time. `read`: it was interrupted, and may have changed tables without transactions, unless it only
 * read. `no`: it would be refused again.
 */
export type MysqlRepetition = 'yes' | 'read' | 'no';

/** The promises of an error of MySQL's on paths with real statuses. `meaning` is a clause for people. */
export type MysqlFailureFacts = {
  readonly status: 403 | 409 | 413 | 422 | 503 | 504;
  readonly meaning: string;
  readonly repeat: MysqlRepetition;
};

/** A number with `when` has several lines: the first whose condition holds counts. */
export type MysqlFailure = MysqlFailureFacts & {
  readonly errno: number;
  readonly when?:
    | 'the request is read-only'
    | 'the server is read-only'
    | 'a group switches its primary';
};

/** MySQL's errors that are not plainly refused with 422, or may be repeated. */
export const mysqlFailures: readonly MysqlFailure[] = [
  { errno: 1044, status: 403, meaning: 'the account may not use this database', repeat: 'no' },
  { errno: 1142, status: 403, meaning: 'the account may not do this to the table', repeat: 'no' },
  { errno: 1143, status: 403, meaning: 'the account may not do this to the column', repeat: 'no' },
  { errno: 1227, status: 403, meaning: 'the account lacks a privilege', repeat: 'no' },
  {
    errno: 1792,
    when: 'the request is read-only',
    status: 403,
    meaning: 'it would have written',
    repeat: 'no',
  },
  { errno: 1062, status: 409, meaning: 'a duplicate key', repeat: 'no' },
  { errno: 1216, status: 409, meaning: 'a foreign key: no such parent', repeat: 'no' },
  { errno: 1217, status: 409, meaning: 'a foreign key: there are children', repeat: 'no' },
  { errno: 1451, status: 409, meaning: 'a foreign key: there are children', repeat: 'no' },
  { errno: 1452, status: 409, meaning: 'a foreign key: no such parent', repeat: 'no' },
  { errno: 1213, status: 409, meaning: 'a deadlock, or a conflict in a cluster', repeat: 'yes' },
  { errno: 1205, status: 409, meaning: 'waited too long for a lock', repeat: 'yes' },
  { errno: 1020, status: 409, meaning: 'a row has changed since the snapshot', repeat: 'yes' },
  {
    errno: 1153,
    status: 413,
    meaning: "the statement is longer than the server's `max_allowed_packet`",
    repeat: 'no',
  },
  { errno: 1040, status: 503, meaning: 'the server has no connection left', repeat: 'yes' },
  { errno: 1203, status: 503, meaning: 'the account has no connection left', repeat: 'yes' },
  { errno: 1226, status: 503, meaning: 'the account is over a limit of its own', repeat: 'yes' },
  { errno: 1045, status: 503, meaning: 'the server refuses the account', repeat: 'yes' },
  { errno: 1047, status: 503, meaning: 'a cluster node that takes no statements', repeat: 'yes' },
  { errno: 1836, status: 503, meaning: 'the server has become read-only', repeat: 'yes' },
  {
    errno: 1290,
    when: 'the server is read-only',
    status: 503,
    meaning: 'it takes no writes of this account',
    repeat: 'yes',
  },
  {
    errno: 1792,
    status: 503,
    meaning: 'the server has become read-only for transactions that did not ask for it',
    repeat: 'yes',
  },
  {
    errno: 4094,
    when: 'a group switches its primary',
    status: 503,
    meaning: 'the former one has ended what it still ran',
    repeat: 'yes',
  },
  {
    errno: 3100,
    status: 503,
    meaning:
      'a member that leaves its replication group, or a transaction that is too large for the group; it has been undone',
    repeat: 'yes',
  },
  {
    errno: 1317,
    status: 504,
    meaning: 'another session interrupted the statement',
    repeat: 'read',
  },
  {
    errno: 3024,
    status: 504,
    meaning: "the server's `max_execution_time`, which stops nothing but reads",
    repeat: 'yes',
  },
  { errno: 1969, status: 504, meaning: "the server's `max_statement_time`", repeat: 'read' },
  { errno: 1053, status: 422, meaning: 'the server is shutting down', repeat: 'read' },
  { errno: 1412, status: 422, meaning: 'the table has changed since the snapshot', repeat: 'yes' },
  { errno: 1927, status: 422, meaning: 'another session killed the connection', repeat: 'read' },
  { errno: 3101, status: 422, meaning: 'a conflict in a replication group', repeat: 'yes' },
  {
    errno: 1180,
    status: 422,
    meaning: 'COMMIT failed, and the statement may have been applied all the same: `unknown`',
    repeat: 'no',
  },
  { errno: 3572, status: 422, meaning: 'a row is locked, under NOWAIT', repeat: 'yes' },
];

/** The gateway's codes for a condition that the client itself has set. */
const unmetConditions: ReadonlySet<FailureCode | null> = new Set([
  'EXPECTATION_FAILED',
  'TOO_MANY_ROWS',
  'NO_ROW',
  'NOT_ONE_ROW',
] as const);

/** Duplicate keys, foreign keys, CHECK (MySQL's number and MariaDB's), and SIGNAL with a number of its own. */
const refusedByData: ReadonlySet<number | null> = new Set([
  1022, 1062, 1169, 1216, 1217, 1451, 1452, 1557, 1586, 1644, 1761, 1762, 3819, 4025,
]);

/**
 * Whether a request was refused because of the data that it met: every program meets such refusals, and nothing is wrong with the
 * gateway, the database or the statement.
 */
export function isDataRefusal(code: FailureCode | null, errno: number | null): boolean {
  return unmetConditions.has(code) || (code === null && refusedByData.has(errno));
}

/** All others. */
export const otherMysqlFailure: MysqlFailureFacts = {
  status: 422,
  meaning: 'refused by MySQL',
  repeat: 'no',
};

/** Why a worker's database is not ready, as /readyz and a gauge report it, and what that means. */
export const unready = {
  STARTING: 'the worker has not checked the database yet',
  STOPPING: 'the gateway is stopping',
  DATABASE_UNRESOLVED:
    "the server's name could not be resolved: DNS does not know it, or does not answer; the server itself was not asked",
  DATABASE_UNREACHABLE: 'the server cannot be reached: no route, no listener',
  DATABASE_REFUSED:
    "the server refuses the gateway's login, or a setting of its sessions; `errno` is its own number",
  DATABASE_UNAVAILABLE:
    'the server accepts no connection now: it has none left, starts, stops, or is not ready; `errno` is its own number',
  DATABASE_UNUSABLE:
    'the server breaks the protocol, or asks for the password in a way that the gateway refuses',
  DATABASE_TLS: 'TLS towards the server failed',
  DATABASE_SILENT: 'the server did not answer in time',
  NO_SERVER: 'none of the servers of the section can serve; the log says why for each',
  GALERA_NOT_READY: 'a node of a Galera cluster that takes no statements at the moment',
} as const;

export type UnreadyCode = keyof typeof unready;

export const unreadyCodes = Object.keys(unready) as readonly UnreadyCode[];

/** The report to clients and in `/readyz` if no connection to a server can be opened. */
type ConnectFailureFacts = {
  readonly code: FailureCode;
  readonly unready: UnreadyCode;
  /** For people, a clause without hosts, accounts and the server's own words. */
  readonly meaning: string;
};

/** Why no connection to a server can be opened. */
export const connectFailures = {
  'name unresolved': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_UNRESOLVED',
    meaning: 'the name of the database server cannot be resolved',
  },
  'server unreachable': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_UNREACHABLE',
    meaning: 'the database server cannot be reached',
  },
  'server silent': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_SILENT',
    meaning: 'the database server does not answer in time',
  },
  'tls failed': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_TLS',
    meaning: 'TLS towards the database server failed',
  },
  'server unusable': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_UNUSABLE',
    meaning:
      'the database server breaks the protocol, or asks for the password in a way that the gateway refuses',
  },
  'server unavailable': {
    code: 'DATABASE_UNREACHABLE',
    unready: 'DATABASE_UNAVAILABLE',
    meaning: 'the database server accepts no connection now',
  },
  'login refused': {
    code: 'DATABASE_REFUSED',
    unready: 'DATABASE_REFUSED',
    meaning: "the database server refuses the gateway's login",
  },
} as const satisfies Readonly<Record<string, ConnectFailureFacts>>;

export type ConnectFailureKind = keyof typeof connectFailures;

/** Whether a reason is that no connection to a server can be opened. */
export function isConnectFailure(reason: string): reason is ConnectFailureKind {
  return Object.hasOwn(connectFailures, reason);
}

/** The ways in which a database request ends: well, with an error of MySQL's, or as its OUTCOME says. */
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

/** The meaning of a reply's OUTCOME for the data. */
export const outcomeMeanings: Readonly<Record<Exclude<RequestOutcome, 'ok' | 'error'>, string>> = {
  not_executed: 'the statement never reached MySQL',
  failed:
    'MySQL refused the statement (on `/v1`), or a read was stopped, or could not be run again after its first run was cut short: nothing has changed, except what tables without transactions keep of a refused write',
  partial:
    'several statements: those before `STATEMENT` were executed; what a transaction left open had done is undone. If a CALL, a block, a DROP, a CREATE OR REPLACE, or a statement about several accounts failed: what it had done before may remain. For a transaction: it is over, and a part of it remains',
  rolled_back: 'an error, and everything before it was undone',
  unknown: 'it may or may not have been applied',
};

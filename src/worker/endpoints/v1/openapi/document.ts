// The OpenAPI 3.1 document of /v1, made of the tables by which requests are checked and failures reported.
import {
  type FailureCode,
  type FailureFacts,
  failures,
  mysqlFailures,
  otherMysqlFailure,
} from '../../../../shared/failure-codes.ts';
import { errorName } from '../../../../shared/mysql/error-names.ts';
import { version } from '../../../../shared/process/build.ts';
import { jsonType } from '../../../encode/head.ts';
import { sendText } from '../../../http/failure-reply.ts';
import type { Handler } from '../../endpoint.ts';
import type { NamedEntry, NamedStatements } from '../../named/statements.ts';
import { batchFields, batchStatementFields } from '../batch-request.ts';
import type { MediaType } from '../headers.ts';
import { queryFields } from '../request.ts';
import { beginFields, endFields } from '../transaction-request.ts';
import { insidePaths, insideSchemas } from './inside.ts';
import { type CommonParts, describeNamed } from './named.ts';
import { describeRequest, refer, type Schema, schemas } from './schemas.ts';
import { describeTablePaths } from './tables.ts';

/** Codes that no request to a path of /v1 gets. */
const neverHere: ReadonlySet<FailureCode> = new Set([
  'NOT_FOUND',
  'METHOD_NOT_ALLOWED',
  'MULTI_STATEMENTS_OFF',
  'PARAMS_SEVERAL',
  'NO_METRICS',
]);

/** Codes that only calls of named statements get. */
const ofNamed: ReadonlySet<FailureCode> = new Set([
  'KEY_REQUIRED',
  'PARAMETER',
  'CLAIM_MISSING',
  'CLAIM_INVALID',
  'ENUM_UNKNOWN',
  'NO_ROW',
  'NOT_ONE_ROW',
]);
/** Codes that other paths get for a path alone, and named statements for their names too. */
const ofNames: ReadonlySet<FailureCode> = new Set(['NOT_FOUND', 'METHOD_NOT_ALLOWED']);

/** Statuses of replies that leave before a request's path is known, in the format of /db. */
const beforeItsPath: ReadonlySet<number> = new Set([400, 408, 414, 431, 503]);

const requestIdHeader = {
  'X-Request-ID': {
    required: true,
    schema: { type: 'string' },
    description: 'The id of the request, as in the log.',
  },
};
const retryAfterHeader = {
  'Retry-After': { required: true, schema: { type: 'integer' }, description: 'In seconds.' },
};

const keyParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description:
    'Of a write: the same key with the same request is executed once, and every repetition gets the first reply.',
};
const tokenParameter = {
  name: 'X-Consistency-Token',
  in: 'header',
  schema: { type: 'string', minLength: 1, maxLength: 4096 },
  description:
    'The token of an earlier reply: what is read shows at least what that one showed, and what was written by then.',
};
const traceParameter = {
  name: 'traceparent',
  in: 'header',
  schema: { type: 'string' },
  description:
    'The trace that the request is part of (W3C Trace Context): for the log and, as a query attribute, for MySQL. One that is none is ignored.',
};
const seenHeaders = {
  'X-Consistency-Token': {
    schema: { type: 'string', maxLength: 4096 },
    description: 'Where the section has several servers: what has been seen, for later requests.',
  },
  'X-Consistency': {
    schema: { const: 'unverified' },
    description: 'It is not known whether the reply shows all that had been seen before.',
  },
};
const replayedHeader = {
  'Idempotency-Replayed': {
    schema: { const: 'true' },
    description: 'The reply was given before, to a request with the same key.',
  },
};

/** The formats of rows beside JSON. */
const rowFormats: Readonly<Record<Exclude<MediaType, 'application/json'>, Schema>> = {
  'application/x-ndjson': {
    schema: {
      type: 'string',
      description:
        'Lines of JSON: `{"columns":[…]}`, a row each, and at last `{"end":{…}}`, or `{"error":{…}}` with a Problem.',
    },
  },
  'text/csv': {
    schema: { type: 'string', description: 'RFC 4180 with a header. NULL is an empty field.' },
  },
};

/** The document, as an object for JSON. @param named the statements that the caller may call */
export function describeV1(named: readonly NamedEntry[] = []): Schema {
  const failed = describeFailures(false);
  const failedNamed = named.length === 0 ? failed : describeFailures(true);
  const post = (operation: Operation) => ({
    post: describeOperation(operation, operation.mayCallNamed === true ? failedNamed : failed),
  });
  return {
    openapi: '3.1.1',
    info: {
      title: 'dbhttpd',
      version,
      description: 'A MySQL or MariaDB database behind HTTP and JSON.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{}, { token: [] }],
    paths: {
      '/v1/query': post({
        operationId: 'query',
        summary: 'Runs one statement.',
        takesKey: true,
        description:
          'The method QUERY (RFC 10008) is taken too, with the same body: it is the same with `read_only` set.',
        asked: 'QueryRequest',
        done: 'What the statement has answered.',
        reply: { oneOf: [refer('Rows'), refer('Changes'), refer('Several')] },
        otherFormats: rowFormats,
      }),
      '/v1/batch': post({
        operationId: 'batch',
        mayCallNamed: true,
        summary: 'Runs several statements in one transaction.',
        takesKey: true,
        asked: 'BatchRequest',
        done: 'All of it counts.',
        reply: refer('Batch'),
      }),
      '/v1/transaction': post({
        operationId: 'begin',
        summary: 'Begins a transaction that stays open from request to request.',
        asked: 'BeginRequest',
        status: 201,
        reply: refer('Begun'),
      }),
      '/v1/transaction/commit': post({
        operationId: 'commit',
        summary: 'Commits a transaction.',
        asked: 'EndRequest',
        reply: refer('Committed'),
      }),
      '/v1/transaction/rollback': post({
        operationId: 'rollback',
        summary: 'Rolls a transaction back.',
        asked: 'EndRequest',
        reply: refer('RolledBack'),
      }),
      ...(named.length > 0 && describeNamed(named, commonParts(failedNamed))),
      ...describeTablePaths(requestIdHeader, failed),
      ...insidePaths,
    },
    components: {
      schemas: {
        ...schemas,
        ...insideSchemas,
        BeginRequest: describeRequest(beginFields, []),
        EndRequest: describeRequest(endFields, ['transaction']),
        QueryRequest: describeRequest(queryFields, ['sql']),
        BatchRequest: describeRequest(batchFields, ['statements']),
        BatchStatement: {
          ...describeRequest(batchStatementFields, []),
          oneOf: ['sql', 'named'].map((name) => ({
            properties: { [name]: { type: 'string' } },
            required: [name],
          })),
        },
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
  };
}

/** The differences between operations of /v1 that run statements. */
type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly takesKey?: boolean;
  readonly mayCallNamed?: boolean;
  /** The schema of the request. */
  readonly asked: string;
  readonly status?: number;
  /** The meaning of the status. */
  readonly done?: string;
  readonly reply: Schema;
  readonly otherFormats?: Schema;
};

function describeOperation(operation: Operation, failed: Schema): Schema {
  const { operationId, summary, description, takesKey = false, asked, reply } = operation;
  const { status = 200, done = 'It is done.', otherFormats = {} } = operation;
  return {
    operationId,
    summary,
    description,
    parameters: [...(takesKey ? [keyParameter] : []), tokenParameter, traceParameter],
    requestBody: { required: true, content: { 'application/json': { schema: refer(asked) } } },
    responses: {
      [status]: {
        description: done,
        headers: { ...requestIdHeader, ...seenHeaders, ...(takesKey && replayedHeader) },
        content: { 'application/json': { schema: reply }, ...otherFormats },
      },
      ...failed,
    },
  };
}

/** A response for every status with which a request can fail, with what it can mean. */
function describeFailures(isNamed: boolean): Readonly<Record<string, Schema>> {
  const meanings = new Map<number, string[]>();
  const add = (status: number, meaning: string) =>
    meanings.set(status, [...(meanings.get(status) ?? []), meaning]);
  for (const [code, facts] of Object.entries(failures) as [FailureCode, FailureFacts][]) {
    const isElsewhere = isNamed
      ? neverHere.has(code) && !ofNames.has(code)
      : neverHere.has(code) || ofNamed.has(code);
    if (isElsewhere || facts.repeat === 'unreported') continue;
    add(facts.status, `\`${code}\`: ${facts.meaning}.`);
    if (facts.sentStatus !== undefined) add(facts.sentStatus, `\`${code}\`: ${facts.meaning}.`);
  }
  for (const { errno, status, when, meaning } of mysqlFailures) {
    const whole = when === undefined ? meaning : `${when}: ${meaning}`;
    add(status, `\`${errorName(errno)}\`: ${whole}.`);
  }
  add(otherMysqlFailure.status, `Any other error of MySQL's: ${otherMysqlFailure.meaning}.`);
  const statuses = [...meanings.keys()].sort((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status) => [`${status}`, describeFailure(status, meanings.get(status) ?? [])]),
  );
}

function describeFailure(status: number, meanings: readonly string[]): Schema {
  return {
    description: meanings.join(' '),
    headers: {
      ...requestIdHeader,
      ...seenHeaders,
      ...(status === 503 || status === 429 ? retryAfterHeader : {}),
    },
    content: {
      'application/problem+json': { schema: refer('Problem') },
      ...(beforeItsPath.has(status) ? { 'application/json': { schema: refer('Refusal') } } : {}),
    },
  };
}

function commonParts(failed: Readonly<Record<string, Schema>>): CommonParts {
  return {
    parameters: [tokenParameter, traceParameter],
    keyParameter,
    headers: { ...requestIdHeader, ...seenHeaders },
    rowFormats,
    failed,
  };
}

/** The document as text. Without named statements it is made once for each worker. */
export function createOpenapi(statements: NamedStatements): Handler {
  const plain = JSON.stringify(describeV1([]));
  return (_request, response, _head, { requestId, caller }) => {
    const named = statements.list(caller.client);
    const text = named.length === 0 ? plain : JSON.stringify(describeV1(named));
    response.addHeaders(['X-Request-ID', requestId]);
    sendText(response, text, jsonType);
  };
}

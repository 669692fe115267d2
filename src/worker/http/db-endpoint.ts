// /db: decodes a request, decides how it is to be run, and starts its exchange.
// Must not know sockets, nor how statements reach MySQL.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../../shared/config.ts';
import { runTogether, statementCommand } from '../mysql/commands.ts';
import type { Statement } from '../mysql/preparation.ts';
import type { Visit } from '../observe/visit.ts';
import type { ResultNote } from '../reply/db-reply.ts';
import { bind } from '../sql/bind.ts';
import { classify } from '../sql/classify.ts';
import { type Applied, rollbackUndoesAll } from '../sql/rollback.ts';
import { shapeOf } from '../sql/shape.ts';
import { createResultMap, scanStatements } from '../sql/statements.ts';
import { readBody } from './body.ts';
import { announcesBody } from './body-announcement.ts';
import { type Conclude, DbExchange, type ExchangeContext } from './db-exchange.ts';
import { fetchMetadata, localMetadata, needsConnection } from './db-metadata.ts';
import { type DbRequest, type Decoded, decodeDbBody, decodeDbQueryString } from './db-request.ts';
import { type Failure, jsonHeaders, refusal, sendFailure } from './failure.ts';
import type { RequestHead } from './request-head.ts';

/** Answers one request to /db. The visit's id is repeated in the reply. */
export type DbEndpoint = (
  request: IncomingMessage,
  response: ServerResponse,
  head: RequestHead,
  visit: Visit,
) => void;

/** Creates the endpoint of one worker. */
export function createDbEndpoint(config: Config, context: ExchangeContext): DbEndpoint {
  return (request, response, head, visit) => {
    const fail = (failure: Failure) =>
      sendFailure(response, failure, ['X-Request-ID', visit.requestId]);
    const answer = (decoded: Decoded) => {
      if (decoded.ok) answerRequest(config, context, response, visit, decoded.request);
      else fail({ ...decoded.failure, outcome: 'not_executed' });
    };
    if (request.method === 'GET') {
      if (announcesBody(request)) {
        response.shouldKeepAlive = false;
        fail(refusal(400, 'BAD_REQUEST', 'A GET has no body here; use POST.'));
      } else {
        answer(decodeDbQueryString(head.query ?? '', config.section));
      }
      return;
    }
    if (request.method !== 'POST') {
      fail({
        ...refusal(405, 'METHOD_NOT_ALLOWED', '/db takes GET and POST.'),
        allow: 'GET, POST',
      });
      return;
    }
    if (!isJson(request.headers['content-type'])) {
      response.shouldKeepAlive = false;
      fail(
        refusal(
          415,
          'UNSUPPORTED_MEDIA_TYPE',
          'The body must be application/json (with curl: --json).',
        ),
      );
      return;
    }
    readBody(request, config.maxRequestBytes, {
      complete: (body) => answer(decodeDbBody(body, config.section)),
      failed: (failure) => {
        response.shouldKeepAlive = false;
        fail(failure);
      },
    });
  };
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json[ \t]*(;.*)?$/i.test(contentType ?? '');
}

function answerRequest(
  config: Config,
  context: ExchangeContext,
  response: ServerResponse,
  visit: Visit,
  request: DbRequest,
): void {
  if (request.sql === null && !needsConnection(request.metadata)) {
    sendMetadata(response, config, request, visit.requestId);
    return;
  }
  const decided = decideStatement(config, request);
  if (!decided.ok) {
    sendFailure(response, decided.failure, ['X-Request-ID', visit.requestId]);
    return;
  }
  const { statement } = decided;
  const exchange = new DbExchange(
    context,
    {
      statement,
      timeoutMs: Math.min(
        request.timeoutMs ?? config.statementTimeoutMs,
        config.statementTimeoutMs,
      ),
      visit,
      reply: {
        serverKey: `"SERVER":${JSON.stringify(config.section)}`,
        heads: context.heads,
        exactAsStrings: request.exactNumbersAsStrings,
        maxRows: config.maxRows,
        maxResultBytes: config.maxResultBytes,
        failedStatement: (results) => mapResults(statement.sql ?? '', results).failedIndex,
      },
      conclude: createConclusion(config, request, statement.sql ?? ''),
    },
    response,
  );
  exchange.start();
}

type Decided =
  | { readonly ok: true; readonly statement: Statement }
  | { readonly ok: false; readonly failure: Failure };

const nothingToRun: Statement = {
  sql: null,
  isRead: true,
  needsFreshSession: false,
  leavesSessionClean: true,
  isReadOnly: false,
  shape: null,
};

/** Functions whose answer does not tell that they were ended early. */
const takesTime = /sleep|benchmark/i;

/** What is sent to MySQL for a request, and how; or why nothing is. */
function decideStatement(config: Config, request: DbRequest): Decided {
  if (request.sql === null) return { ok: true, statement: nothingToRun };
  const bound =
    request.params === null
      ? ({ ok: true, sql: request.sql } as const)
      : bind(request.sql, request.params);
  if (!bound.ok) {
    return { ok: false, failure: refusal(400, bound.failure.code, bound.failure.message) };
  }
  const { kind, single, readOnlyAllowed, readsEarlierSession, leavesSessionClean } = classify(
    bound.sql,
  );
  if (!config.multiStatements && !single) {
    const message = 'Several statements in one request are switched off here.';
    return { ok: false, failure: refusal(400, 'MULTI_STATEMENTS_OFF', message) };
  }
  const isReadOnly = config.readOnly || request.readOnly;
  if (isReadOnly && !readOnlyAllowed) {
    const message = 'Only a single statement that reads, and does nothing else, is allowed here.';
    return { ok: false, failure: refusal(403, 'READ_ONLY', message) };
  }
  const isRead = kind === 'read';
  const isClean = leavesSessionClean && config.sessionReset === 'auto';
  const maySharePlace =
    isRead && isClean && !readsEarlierSession && !isReadOnly && !takesTime.test(bound.sql);
  return {
    ok: true,
    statement: {
      sql: bound.sql,
      isRead,
      needsFreshSession: readsEarlierSession,
      leavesSessionClean: isClean,
      isReadOnly,
      shape: maySharePlace ? shapeOf(bound.sql) : null,
    },
  };
}

/** ER_PARSE_ERROR: the statement was not run, whatever its first word is. */
const syntaxError = 1064;

/** What follows the statements on their connection: metadata after success, ROLLBACK after an error. */
function createConclusion(config: Config, request: DbRequest, sql: string): Conclude | null {
  const { metadata, rollbackOnError } = request;
  if (metadata.length === 0 && !rollbackOnError) return null;
  return async (connection, error, results) => {
    if (error === null) {
      return { trailer: await fetchMetadata(config, metadata, connection), rolledBack: false };
    }
    if (!rollbackOnError) return { trailer: [], rolledBack: false };
    await runTogether(connection, [statementCommand('ROLLBACK', connection.columns)]);
    const { applied, failedVerb } = mapResults(sql, results);
    const rolledBack = rollbackUndoesAll(applied, error.errno === syntaxError ? '' : failedVerb);
    return {
      trailer: [
        ['ROLLBACK_ON_ERROR', 'true'],
        ['ROLLBACK_ON_ERROR_SUCCESS', String(rolledBack)],
      ],
      rolledBack,
    };
  };
}

/** Which statements the results before an error belong to, and which one failed. */
function mapResults(sql: string, results: readonly ResultNote[]) {
  const statements = scanStatements(sql);
  const map = createResultMap(statements);
  const applied: Applied[] = results.map(({ isResultSet, inTransaction }) => ({
    verb: statements[map.next(isResultSet)]?.verb ?? '',
    inTransaction,
  }));
  const failedIndex = map.next(false);
  return { applied, failedIndex, failedVerb: statements[failedIndex]?.verb ?? '' };
}

function sendMetadata(
  response: ServerResponse,
  config: Config,
  request: DbRequest,
  requestId: string,
): void {
  const keys = localMetadata(config, request.metadata);
  const body = `{${keys.map(([key, json]) => `"${key}":${json}`).join(',')}}`;
  response.writeHead(200, [
    ...jsonHeaders,
    'X-Request-ID',
    requestId,
    'Content-Length',
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}

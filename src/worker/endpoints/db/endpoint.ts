// /db: decodes a request, has it decided how it is to be run, and starts its exchange.
// Must not know sockets, nor how statements reach MySQL.

import type { Config } from '../../../shared/config/config.ts';
import { longFrom } from '../../../shared/pieces.ts';
import {
  chooseDbFormat,
  createDbHeads,
  type DbExtras,
  type DbReplyOptions,
} from '../../encode/formats/db.ts';
import { jsonType, typedHeaders } from '../../encode/head.ts';
import type { Statement } from '../../execution/work.ts';
import { refusal } from '../../failure/failure.ts';
import { type OutgoingReply, sendFailure } from '../../http/reply.ts';
import { announcesBody } from '../../http/request.ts';
import type { RequestRecord } from '../../observe/observation.ts';
import { rulesOf } from '../../request/compat.ts';
import { Exchange } from '../../request/exchange.ts';
import type { Handler } from '../../request/router.ts';
import { readAnyBody, readJsonBody } from '../json-body.ts';
import { type Asker, workThen } from '../long-requests.ts';
import { type AllServed, type Served, ServedSections } from '../served-sections.ts';
import { decideThen, nothingToRun, type StatementWish } from '../statement.ts';
import { describeServer, localMetadata, needsConnection } from './metadata.ts';
import {
  type DbRequest,
  type Decoded,
  decodeDbBody,
  decodeDbQueryString,
  decodeDbQueryStringInPieces,
} from './request.ts';

const bodyOfGet = refusal('BAD_REQUEST', 'A GET has no body here; use POST.');

const takesNoKey = refusal(
  'IDEMPOTENCY_UNFIT',
  '/db does not take an Idempotency-Key: use /v1/query or /v1/batch.',
);

/** Creates the endpoint of one worker, for GET and POST. */
export function createDbEndpoint(all: AllServed): Handler {
  const [{ config, context }] = all;
  const bodies = {
    maxRequestBytes: config.maxRequestBytes,
    observe: context.observe,
    longWork: context.longWork,
    toleratesMark: true,
  };
  const rules = rulesOf[config.compat];
  const sections = new ServedSections(all, createKept);
  const { names } = sections;
  const answer = (
    response: OutgoingReply,
    record: RequestRecord,
    decoded: Decoded,
    isLong: boolean,
  ) => {
    if (decoded.ok) {
      const { request } = decoded;
      answerRequest(sections.of(request.section), { response, record }, request, isLong);
    } else
      sendFailure(
        response,
        refusal(decoded.failure.code, decoded.failure.message),
        record.requestId,
      );
  };
  const answerQuery = (response: OutgoingReply, record: RequestRecord, query: string) => {
    if (query.length <= longFrom) {
      answer(response, record, decodeDbQueryString(query, names, rules), false);
      return;
    }
    const decoding = decodeDbQueryStringInPieces(query, names, rules);
    workThen(context, { response, record }, decoding, (decoded) =>
      answer(response, record, decoded, true),
    );
  };
  return (request, response, head, record) => {
    if (request.headers['idempotency-key'] !== undefined) {
      response.shouldKeepAlive = false;
      sendFailure(response, takesNoKey, record.requestId);
      return;
    }
    if (request.method === 'GET') {
      if (announcesBody(request)) {
        response.shouldKeepAlive = false;
        sendFailure(response, bodyOfGet, record.requestId);
      } else {
        answerQuery(response, record, head.query ?? '');
      }
      return;
    }
    const { query } = head;
    if (rules.objectInPostUrl && query !== null && query !== '') {
      readAnyBody(request, response, record, bodies, () => answerQuery(response, record, query));
      return;
    }
    readJsonBody(request, response, record, bodies, (body, parsed) =>
      answer(response, record, decodeDbBody(body, names, rules, parsed), parsed !== null),
    );
  };
}

/** How replies are written: exact numbers as JSON's own, or as strings. */
type ReplyVariants = { readonly numbers: DbReplyOptions; readonly strings: DbReplyOptions };

/** What is kept for a section. */
type Kept = Served & { readonly replies: ReplyVariants };

function createKept({ config, context }: Served): Kept {
  const { rowModule } = context;
  const numbers: DbReplyOptions = {
    serverKey: Buffer.from(`"SERVER":${JSON.stringify(config.section)}`),
    heads: createDbHeads(false),
    rowModule,
    maxRows: config.maxRows,
    maxResultBytes: config.maxResultBytes,
  };
  const strings = { ...numbers, heads: createDbHeads(true) };
  return { config, context, replies: { numbers, strings } };
}

function answerRequest(kept: Kept, asker: Asker, request: DbRequest, isLong: boolean): void {
  const { sql } = request;
  if (sql === null && !needsConnection(request.metadata)) {
    sendMetadata(asker.response, kept.config, request, asker.record.requestId);
  } else if (sql === null) {
    run(kept, asker, request, nothingToRun);
  } else {
    decideThen(kept, wishOf(request, sql), isLong, asker, (decided) => {
      if (decided.ok) run(kept, asker, request, decided.statement);
      else sendFailure(asker.response, decided.failure, asker.record.requestId);
    });
  }
}

function run(
  { config, context, replies }: Kept,
  { response, record }: Asker,
  request: DbRequest,
  statement: Statement,
): void {
  const after = context.tokens.decode(response.req.headers);
  if (after !== null && 'code' in after) {
    sendFailure(response, after, record.requestId);
    return;
  }
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(request.timeoutMs ?? most, most);
  const options = request.exactNumbersAsStrings ? replies.strings : replies.numbers;
  const format = chooseDbFormat(options, extrasOf(config, request));
  new Exchange(context, { work: statement, timeoutMs, record, format, after }, response).start();
}

/** What a request to /db wants to have run. Replies with more than the results are nobody else's. */
export function wishOf(request: DbRequest, sql: string): StatementWish {
  const { params, readOnly, rollbackOnError, metadata, exactNumbersAsStrings } = request;
  const isAlone = rollbackOnError || metadata.length > 0;
  return {
    sql,
    params,
    paramsKey: 'PARAMS',
    readOnly,
    isSingle: false,
    rollbackOnError,
    asksServer: needsConnection(metadata),
    format: isAlone ? null : exactNumbersAsStrings ? 'db strings' : 'db numbers',
  };
}

function extrasOf(config: Config, { metadata, rollbackOnError }: DbRequest): DbExtras | null {
  if (metadata.length === 0 && !rollbackOnError) return null;
  return { describe: (facts) => describeServer(config, metadata, facts), rollbackOnError };
}

function sendMetadata(
  response: OutgoingReply,
  config: Config,
  request: DbRequest,
  requestId: string,
): void {
  const keys = localMetadata(config, request.metadata);
  const body = `{${keys.map(([key, json]) => `"${key}":${json}`).join(',')}}`;
  response.writeHead(200, [
    ...typedHeaders(jsonType),
    'X-Request-ID',
    requestId,
    'Content-Length',
    String(Buffer.byteLength(body)),
  ]);
  response.end(body);
}

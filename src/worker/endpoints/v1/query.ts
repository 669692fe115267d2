// /v1/query: decodes a request, has it decided how it is to be run, and starts its exchange.
// Must not know sockets, nor how statements reach MySQL.
import type { Config } from '../../../shared/settings/config.ts';
import { Exchange, type ExchangeContext } from '../../http/exchange.ts';
import { sendFailure } from '../../http/failure.ts';
import type { OutgoingReply } from '../../http/outgoing-reply.ts';
import type { Handler } from '../../http/router.ts';
import type { RequestRecord } from '../../observe/request-record.ts';
import { type Failure, refusal } from '../../reply/failure.ts';
import type { V1Layout } from '../../reply/formats/v1-cells.ts';
import { chooseV1Json, createV1Heads } from '../../reply/formats/v1-json.ts';
import type { ResultHeads } from '../../reply/result-heads.ts';
import { readJsonBody } from '../json-body.ts';
import { decideStatement, type SqlContext } from '../statement.ts';
import { chooseMediaType } from './accept.ts';
import { decodeQuery, type QueryRequest } from './request.ts';

const noKeysHere = refusal(
  'IDEMPOTENCY_OFF',
  'Idempotency-Key needs idempotency_table in the configuration of this section.',
);

/** Creates the endpoint of one worker, for POST and QUERY (RFC 10008: the same, and it only reads). */
export function createQueryEndpoint(
  config: Config,
  context: SqlContext & ExchangeContext,
): Handler {
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe: context.observe };
  const headsOf = rememberHeads();
  return (request, response, _head, record) => {
    const refused = checkHeaders(request.headers);
    if (refused !== null) {
      response.shouldKeepAlive = false;
      sendFailure(response, refused, record.requestId);
      return;
    }
    const isQuery = request.method === 'QUERY';
    readJsonBody(request, response, record, bodies, (body) => {
      const decoded = decodeQuery(body, config.section);
      if (!decoded.ok) {
        const { code, message } = decoded.fault;
        sendFailure(response, refusal(code, message), record.requestId);
        return;
      }
      const wanted = isQuery ? { ...decoded.request, readOnly: true } : decoded.request;
      answer(config, context, headsOf(wanted.layout), wanted, response, record);
    });
  };
}

function checkHeaders(headers: NodeJS.Dict<string | string[]>): Failure | null {
  if (headers['idempotency-key'] !== undefined) return noKeysHere;
  if (chooseMediaType(headers.accept as string | undefined) !== null) return null;
  return refusal('NOT_ACCEPTABLE', 'The reply is application/json.');
}

/** What stands before rows, kept for each layout. */
function rememberHeads(): (layout: V1Layout) => ResultHeads {
  const all = new Map<string, ResultHeads>();
  return (layout) => {
    const key = nameOf(layout);
    let heads = all.get(key);
    if (heads === undefined) {
      heads = createV1Heads(layout);
      all.set(key, heads);
    }
    return heads;
  };
}

function nameOf({ rows, numbers, json }: V1Layout): string {
  return `${rows} ${numbers} ${json}`;
}

function answer(
  config: Config,
  context: SqlContext & ExchangeContext,
  heads: ResultHeads,
  request: QueryRequest,
  response: OutgoingReply,
  record: RequestRecord,
): void {
  const maxRows = leastLimit(request.maxRows ?? 0, config.maxRows);
  const decided = decideStatement(
    config,
    {
      sql: request.sql,
      params: request.params,
      paramsKey: 'params',
      readOnly: request.readOnly,
      isSingle: true,
      rollbackOnError: false,
      asksServer: false,
      format: `v1 ${nameOf(request.layout)} ${maxRows}`,
    },
    context.mostStatementBytes(),
    context.catalogue,
  );
  if (!decided.ok) {
    sendFailure(response, decided.failure, record.requestId);
    return;
  }
  const { statement } = decided;
  const format = chooseV1Json({
    section: config.section,
    requestId: record.requestId,
    heads,
    rowModule: context.rowModule,
    maxRows,
    maxResultBytes: config.maxResultBytes,
    isReadOnly: statement.isReadOnly,
    isRead: statement.isRead,
  });
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(request.timeoutMs ?? most, most);
  new Exchange(context, { statement, timeoutMs, record, format }, response).start();
}

/** The lower of two limits of which 0 is none. */
function leastLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

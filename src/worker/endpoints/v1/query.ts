import { whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { FormatChoice } from '../../encode/format.ts';
import type { V1Layout } from '../../encode/formats/v1-heads.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../encode/formats/v1-json.ts';
import { chooseCsv, chooseNdjson } from '../../encode/formats/v1-stream.ts';
import type { OpenStep, Work } from '../../execution/executor.ts';
import type { IdempotencyKey } from '../../execution/idempotency/ledger-entry.ts';
import type { AnalysedStatement, BatchKey } from '../../execution/work.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import { sendFailure } from '../../http/reply.ts';
import { Exchange } from '../../request/exchange.ts';
import type { Handler } from '../../request/router.ts';
import {
  findTransaction,
  type HeldRequests,
  type ReadRequest,
  refuseHeld,
  statementOver,
} from '../held-requests.ts';
import { readJsonBody } from '../json-body.ts';
import { type Asker, workThen } from '../long-requests.ts';
import { type AllServed, type Served, ServedSections, takesKeys } from '../served-sections.ts';
import { decideThen, type StatementWish } from '../statement.ts';
import { chooseMediaType, type MediaType, prefersGzip } from './accept.ts';
import { decideSingle, decideUndoable } from './decide-batch.ts';
import { checkHeaders, keyHeader } from './headers.ts';
import { keyInPieces, keyOf, onlyReads, whyUnfit } from './idempotency.ts';
import { type HeadsOf, nameLayout, rememberHeads } from './remembered-heads.ts';
import { decodeQuery, type QueryRequest } from './request.ts';
import { isJsonOnly } from './result-shape.ts';

const onlyJson = refusal(
  'NOT_ACCEPTABLE',
  'Only application/json answers a statement without columns, a CALL, and a request with max_affected, dry_run or Idempotency-Key.',
);

const aloneOnly = refusal(
  'NOT_IN_TRANSACTION',
  'max_affected, dry_run and Idempotency-Key are not taken in a transaction that stays open.',
);

const readsInWriting = refusal(
  'NOT_IN_TRANSACTION',
  'A transaction reads only when it is begun with read_only: read_only and QUERY are not taken in one that may write.',
);

/** What requests for one section have in common. */
type Kept = Served & { readonly headsOf: HeadsOf };

/** One request, decoded. */
type Asked = {
  readonly request: QueryRequest;
  readonly type: MediaType;
  /** What the client accepts beside it. */
  readonly accept: string | undefined;
  readonly mayCompress: boolean;
  /** Null: it has none. */
  readonly key: IdempotencyKey | null;
  /** Has the statement run in the transaction that its client holds; null: it runs by itself. */
  readonly runHeld: ((statement: AnalysedStatement) => OpenStep) | null;
  /** Whether it is worked on in pieces. */
  readonly isLong: boolean;
};

/** Creates the endpoint of one worker, for POST and QUERY (RFC 10008: the same, and it only reads). */
export function createQueryEndpoint(all: AllServed, held: HeldRequests): Handler {
  const [{ config, context }] = all;
  const { observe, longWork } = context;
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe, longWork };
  const headsOf = rememberHeads();
  const mayHaveKeys = takesKeys(all);
  const sections = new ServedSections(all, (served): Kept => ({ ...served, headsOf }));
  return (request, response, { path }, record) => {
    const { headers, method = '' } = request;
    const refused = checkHeaders(headers, mayHaveKeys);
    if (refused !== null) {
      response.shouldKeepAlive = false;
      sendFailure(response, refused, record.requestId);
      return;
    }
    const mayCompress = config.compress && prefersGzip(headers['accept-encoding'] as string);
    readJsonBody(request, response, record, bodies, (body, parsed) => {
      const decoded = decodeQuery(body, sections.names, parsed);
      if (!decoded.ok) {
        const { code, message } = decoded.fault;
        sendFailure(response, refusal(code, message), record.requestId);
        return;
      }
      const wanted = decoded.request;
      const kept = sections.of(wanted.section);
      const asker = { response, record };
      const isLong = parsed !== null;
      const take = (key: IdempotencyKey | Failure | null) => {
        if (key !== null && 'code' in key) {
          sendFailure(response, key, record.requestId);
          return;
        }
        const query = method === 'QUERY' ? { ...wanted, readOnly: true } : wanted;
        const { accept } = headers;
        const type =
          key !== null || mayBeUndone(query) ? chooseJson(accept) : chooseMediaType(accept);
        if (type === null) {
          sendFailure(response, onlyJson, record.requestId);
          return;
        }
        const asked = { request: query, type, accept, mayCompress, key, runHeld: null, isLong };
        const most = config.statementTimeoutMs;
        const timeoutMs = Math.min(query.timeoutMs ?? most, most);
        const read = { request, response, record, body, timeoutMs };
        if (query.transaction === null) decideThenAnswer(kept, asked, asker);
        else answerHeld(held, sections, query.transaction, asked, read);
      };
      const keyed = () => ({ method, path, fields: decoded.exact() });
      const header = keyHeader(headers);
      if (isLong) workThen(context, asker, keyInPieces(kept.config, header, keyed()), take);
      else take(keyOf(kept.config, header, keyed));
    });
  };
}

/** A statement in the transaction with this token, wherever that is held. */
function answerHeld(
  held: HeldRequests,
  sections: ServedSections<Kept>,
  token: string,
  asked: Asked,
  read: ReadRequest,
): void {
  const { request, key } = asked;
  if (key !== null || mayBeUndone(request)) {
    refuseHeld(read, aloneOnly);
    return;
  }
  const names = request.section === null ? sections.names : [request.section];
  findTransaction(held, token, names, read, {
    asksForEnd: false,
    held: (one, section) => {
      if (request.readOnly && !one.transaction.isReadOnly) {
        refuseHeld(read, readsInWriting);
        return;
      }
      const runHeld = (statement: AnalysedStatement) => held.transactions.run(one, statement);
      decideThenAnswer(sections.of(section), { ...asked, runHeld }, read);
    },
    over: (_ending, wasSent) => refuseHeld(read, statementOver(wasSent)),
  });
}

function chooseJson(accept: string | undefined): MediaType | null {
  return chooseMediaType(accept, ['application/json']);
}

function decideThenAnswer(kept: Kept, asked: Asked, asker: Asker): void {
  const { request, type, isLong } = asked;
  const maxRows = leastLimit(request.maxRows ?? 0, kept.config.maxRows);
  const wish: StatementWish = {
    sql: request.sql,
    params: request.params,
    paramsKey: 'params',
    readOnly: request.readOnly,
    isSingle: true,
    rollbackOnError: false,
    asksServer: false,
    format: `v1 ${type} ${nameLayout(request.layout)} ${maxRows}`,
  };
  decideThen(kept, wish, isLong, asker, (decided) => {
    if (decided.ok) answer(kept, asked, decided.statement, maxRows, asker);
    else sendFailure(asker.response, decided.failure, asker.record.requestId);
  });
}

function answer(
  kept: Kept,
  asked: Asked,
  statement: AnalysedStatement,
  maxRows: number,
  asker: Asker,
): void {
  const { config, context, headsOf } = kept;
  const { request, mayCompress, key } = asked;
  const { response, record } = asker;
  const type = isJsonOnly(statement.analysis) ? chooseJson(asked.accept) : asked.type;
  if (type === null) {
    sendFailure(response, onlyJson, record.requestId);
    return;
  }
  const after = context.tokens.decode(response.req.headers);
  if (after !== null && 'code' in after) {
    sendFailure(response, after, record.requestId);
    return;
  }
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(request.timeoutMs ?? most, most);
  const work = decideWork(asked, statement, timeoutMs);
  if ('code' in work) {
    sendFailure(response, work, record.requestId);
    return;
  }
  const format = chooseFormat(type, request.layout, headsOf, {
    heads: headsOf('application/json', request.layout),
    section: context.sectionJson,
    requestId: record.requestId,
    rowModule: context.rowModule,
    maxRows,
    maxResultBytes: config.maxResultBytes,
    renames: [!statement.isRead && !work.isReadOnly],
    cutsLongWrites: isWithRows(statement),
    isDryRun: request.isDryRun,
    isKept: key !== null,
  });
  const wish = { work, timeoutMs, record, format, mayCompress, after };
  new Exchange(context, wish, response).start();
}

function chooseFormat(
  type: MediaType,
  layout: V1Layout,
  headsOf: HeadsOf,
  options: V1ReplyOptions,
): FormatChoice {
  if (type === 'application/json') return chooseV1Json(options);
  const streamed = { ...options, streamHeads: headsOf(type, layout) };
  return type === 'text/csv' ? chooseCsv(streamed) : chooseNdjson(streamed);
}

/** Whether its reply is held back until it is known that it counts. */
function mayBeUndone({ maxAffected, isDryRun }: QueryRequest): boolean {
  return maxAffected !== null || isDryRun;
}

/** Decides how a statement is run: by itself, in the transaction that its client holds, or as a batch of one. */
function decideWork(
  { request, key, runHeld }: Asked,
  statement: AnalysedStatement,
  timeoutMs: number,
): Work | Failure {
  if (runHeld !== null) {
    const step = runHeld(statement);
    const reason = whyNotInTransaction(statement.analysis, step.isReadOnly);
    return reason === null ? step : notInTransaction(reason);
  }
  if (key !== null) return decideKeyed(request, statement, { ...key, timeoutMs });
  return mayBeUndone(request) ? decideUndoable(statement, request) : statement;
}

function notInTransaction(reason: string): Failure {
  return refusal('NOT_IN_TRANSACTION', `The statement is not taken in a transaction: ${reason}.`);
}

function decideKeyed(
  request: QueryRequest,
  statement: AnalysedStatement,
  key: BatchKey,
): Work | Failure {
  if (statement.isRead) return onlyReads;
  const batch = mayBeUndone(request) ? decideUndoable(statement, request) : decideSingle(statement);
  if ('code' in batch) return batch;
  return whyUnfit(batch) ?? { ...batch, key };
}

const writes: ReadonlySet<string> = new Set(['INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'WITH']);

/** Whether its rows, if it has some, are those that it has written. */
function isWithRows({ isRead, analysis: { statements } }: AnalysedStatement): boolean {
  return !isRead && writes.has(statements[0]?.verb ?? '');
}

/** The lower of two limits of which 0 is none. */
function leastLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

import { scanStatements } from '../../../shared/sql/statements.ts';
import { whyNotInTransaction } from '../../../shared/sql/transaction-safe.ts';
import type { Known } from '../../catalogue/table-effects.ts';
import type { BatchKey } from '../../execute/batch.ts';
import type { HeldStep, Work } from '../../execute/executor.ts';
import type { Statement } from '../../execute/preparation.ts';
import { Exchange } from '../../http/exchange.ts';
import { sendFailure } from '../../http/failure.ts';
import type { OutgoingReply } from '../../http/outgoing-reply.ts';
import type { Handler } from '../../http/router.ts';
import type { IdempotencyKey } from '../../ledger/ledger-entry.ts';
import type { RequestRecord } from '../../observe/request-record.ts';
import { type Failure, refusal } from '../../reply/failure.ts';
import type { FormatChoice } from '../../reply/format.ts';
import type { V1Layout } from '../../reply/formats/v1-cells.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../reply/formats/v1-json.ts';
import { chooseCsv, chooseNdjson } from '../../reply/formats/v1-stream.ts';
import { RowBounds } from '../../reply/kept-reply.ts';
import {
  findTransaction,
  type HeldRequests,
  type ReadRequest,
  refuseHeld,
  statementOver,
} from '../held-requests.ts';
import { readJsonBody } from '../json-body.ts';
import { type AllServed, type Served, ServedSections, takesKeys } from '../served-sections.ts';
import { decideStatement } from '../statement.ts';
import { chooseMediaType, type MediaType, prefersGzip } from './accept.ts';
import { decideSingle, decideUndoable } from './decide-batch.ts';
import { checkHeaders, keyHeader } from './headers.ts';
import { keyOf, onlyReads, whyUnfit } from './idempotency.ts';
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
  readonly mayCompress: boolean;
  /** Null: it has none. */
  readonly key: IdempotencyKey | null;
  /** Has the statement run in the transaction that its client holds; null: it runs by itself. */
  readonly runHeld: ((statement: Statement) => HeldStep) | null;
};

/** Creates the endpoint of one worker, for POST and QUERY (RFC 10008: the same, and it only reads). */
export function createQueryEndpoint(all: AllServed, held: HeldRequests): Handler {
  const [{ config, context }] = all;
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe: context.observe };
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
    readJsonBody(request, response, record, bodies, (body) => {
      const decoded = decodeQuery(body, sections.names);
      if (!decoded.ok) {
        const { code, message } = decoded.fault;
        sendFailure(response, refusal(code, message), record.requestId);
        return;
      }
      const wanted = decoded.request;
      const kept = sections.of(wanted.section);
      const key = keyOf(kept.config, keyHeader(headers), () => {
        return { method, path, fields: decoded.exact() };
      });
      if (key !== null && 'code' in key) {
        sendFailure(response, key, record.requestId);
        return;
      }
      const type = key === null ? chooseFor(wanted, headers.accept) : chooseJson(headers.accept);
      if (type === null) {
        sendFailure(response, onlyJson, record.requestId);
        return;
      }
      const query = method === 'QUERY' ? { ...wanted, readOnly: true } : wanted;
      const asked = { request: query, type, mayCompress, key, runHeld: null };
      const most = config.statementTimeoutMs;
      const timeoutMs = Math.min(query.timeoutMs ?? most, most);
      const read = { request, response, record, body, timeoutMs };
      if (query.transaction === null) answer(kept, asked, response, record);
      else answerHeld(held, sections, query.transaction, asked, read);
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
      const runHeld = (statement: Statement) => held.transactions.run(one, statement);
      answer(sections.of(section), { ...asked, runHeld }, read.response, read.record);
    },
    over: (_ending, wasSent) => refuseHeld(read, statementOver(wasSent)),
  });
}

/** Null: what the statement's reply can be is not accepted. */
function chooseFor(request: QueryRequest, accept: string | undefined): MediaType | null {
  const type = chooseMediaType(accept);
  if (type === 'application/json') return type;
  if (!mayBeUndone(request) && !isJsonOnly(request.sql)) return type;
  return chooseJson(accept);
}

function chooseJson(accept: string | undefined): MediaType | null {
  return chooseMediaType(accept, ['application/json']);
}

function answer(
  { config, context, headsOf }: Kept,
  { request, type, mayCompress, key, runHeld }: Asked,
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
      format: `v1 ${type} ${nameLayout(request.layout)} ${maxRows}`,
    },
    context.mostStatementBytes(),
    context.catalogue(),
  );
  if (!decided.ok) {
    sendFailure(response, decided.failure, record.requestId);
    return;
  }
  const after = context.tokens.decode(response.req.headers);
  if (after !== null && 'code' in after) {
    sendFailure(response, after, record.requestId);
    return;
  }
  const { statement } = decided;
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(request.timeoutMs ?? most, most);
  const batchKey = key === null ? null : { ...key, timeoutMs };
  const work =
    runHeld === null
      ? decideWork(context.catalogue(), request, statement, batchKey)
      : decideHeld(statement, runHeld);
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
    isReadOnly: work.isReadOnly,
    isRead: statement.isRead,
    renames: [!statement.isRead && !work.isReadOnly],
    cutsLongWrites: isWithRows(statement),
    isDryRun: request.isDryRun,
    rowBounds: key === null ? null : new RowBounds(),
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

/** A statement by itself; or a batch of one, where it has a key, or is to be undone, perhaps. */
function decideWork(
  catalogue: Known,
  request: QueryRequest,
  statement: Statement,
  key: BatchKey | null,
): Work | Failure {
  if (key === null) {
    return mayBeUndone(request) ? decideUndoable(statement, request, catalogue) : statement;
  }
  if (statement.isRead) return onlyReads;
  const batch = mayBeUndone(request)
    ? decideUndoable(statement, request, catalogue)
    : decideSingle(statement);
  if ('code' in batch) return batch;
  return whyUnfit(batch) ?? { ...batch, key };
}

/** A statement in a transaction that its client holds; or why it may not stand in one. */
function decideHeld(
  statement: Statement,
  runHeld: (statement: Statement) => HeldStep,
): HeldStep | Failure {
  const step = runHeld(statement);
  const reason = whyNotInTransaction(statement.sql ?? '', null, step.isReadOnly);
  return reason === null
    ? step
    : refusal('NOT_IN_TRANSACTION', `The statement is not taken in a transaction: ${reason}.`);
}

const writes: ReadonlySet<string> = new Set(['INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'WITH']);

/** Whether its rows, if it has some, are those that it has written. */
function isWithRows({ sql, isRead }: Statement): boolean {
  return !isRead && writes.has(scanStatements(sql ?? '')[0]?.verb ?? '');
}

/** The lower of two limits of which 0 is none. */
function leastLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

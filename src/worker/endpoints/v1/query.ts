// /v1/query: decides how one statement is run: by itself, in the transaction that its client holds, or as a batch of one.
import type { Pieces } from '../../../shared/pieces.ts';
import type { Analysis } from '../../../shared/sql/analyse.ts';
import { whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { FormatChoice } from '../../encode/format.ts';
import type { V1Layout } from '../../encode/formats/v1-heads.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../encode/formats/v1-json.ts';
import { chooseCsv, chooseNdjson } from '../../encode/formats/v1-stream.ts';
import type { OpenStep, Work } from '../../execution/executor.ts';
import type { IdempotencyKey } from '../../execution/idempotency/key-store.ts';
import type { OpenTransactions } from '../../execution/transactions/open-transactions.ts';
import type { AnalysedStatement } from '../../execution/work.ts';
import { type Refused, refuse } from '../../failure/failure.ts';
import { timeoutOf } from '../../request/exchange.ts';
import { decideSingle } from '../batch-step.ts';
import type { Call, Decision, SqlEndpoint } from '../endpoint.ts';
import { findTransaction, readsInWriting, statementOver } from '../held-requests.ts';
import { parseBody } from '../json-text.ts';
import { createHint } from '../placeholder-hint.ts';
import { type AllSections, lowerLimit, Sections, type SqlSection, takesKeys } from '../sections.ts';
import { decideStatement, notInTransaction, type StatementWish } from '../statement.ts';
import { decideUndoable } from './decide-batch.ts';
import {
  checkHeaders,
  chooseJson,
  chooseMediaType,
  keyHeader,
  type MediaType,
  mediaTypes,
  prefersGzip,
} from './headers.ts';
import { keyOf, noKey, onlyReads, whyUnfit } from './idempotency.ts';
import { type HeadsOf, nameLayout, rememberHeads } from './layout.ts';
import { decodeQuery, type QueryRequest } from './request.ts';

const onlyJson = refuse(
  'NOT_ACCEPTABLE',
  'Only application/json answers a statement without columns, a CALL, and a request with max_affected, dry_run or Idempotency-Key.',
);

const noCsv = refuse(
  'NOT_ACCEPTABLE',
  'CSV has no place for warnings: the reply to show_warnings is application/json or application/x-ndjson.',
);

const aloneOnly = refuse(
  'NOT_IN_TRANSACTION',
  'max_affected, dry_run and Idempotency-Key are not allowed in a transaction that the client holds.',
);

/** The formats that list warnings. */
const withWarnings: readonly MediaType[] = ['application/json', 'application/x-ndjson'];

/** One request, decoded, and where it runs. */
type Query = {
  readonly call: Call;
  readonly request: QueryRequest;
  readonly section: SqlSection;
  readonly type: MediaType;
  readonly mayCompress: boolean;
  readonly key: IdempotencyKey | null;
  /** Runs a statement in the transaction that its client holds; null: the statement runs by itself. */
  readonly runHeld: ((statement: AnalysedStatement) => OpenStep) | null;
};

/** Creates the endpoint of one worker, for POST and QUERY (RFC 10008: the same, and it only reads). */
export function createQueryEndpoint(all: AllSections, transactions: OpenTransactions): SqlEndpoint {
  const [{ config }] = all;
  const sections = new Sections(all, (served) => served);
  const mayHaveKeys = takesKeys(all);
  const headsOf = rememberHeads();
  return {
    kind: 'sql',
    check: (request) => checkHeaders(request, mayHaveKeys),
    *decide(call) {
      const { headers, method = '' } = call.request;
      const parsed = yield* parseBody(call.body, call.isLong);
      const { caller } = call.record;
      const usable = sections.for(caller.client);
      const { names } = usable;
      const decoded = decodeQuery(parsed, names);
      if (!decoded.ok) return decoded;
      const request = method === 'QUERY' ? { ...decoded.request, readOnly: true } : decoded.request;
      const section = usable.of(request.section);
      const header = keyHeader(headers);
      const keyed =
        header === undefined ? noKey : yield* keyOf(section.config, header, call, decoded);
      if (!keyed.ok) return keyed;
      const { key } = keyed;
      const isJson = key !== null || mayBeUndone(request);
      const offered = request.showWarnings ? withWarnings : mediaTypes;
      const type = isJson ? chooseJson(headers) : chooseMediaType(headers.accept, offered);
      if (type === null) return isJson ? onlyJson : noCsv;
      const mayCompress = config.compress && prefersGzip(headers);
      const query = { call, request, section, type, mayCompress, key, runHeld: null };
      if (request.transaction === null) return yield* decideRun(query, headsOf);
      if (key !== null || mayBeUndone(request)) return aloneOnly;
      const found = findTransaction(transactions, {
        token: request.transaction,
        sections: request.section === null ? names.usable : [request.section],
        caller,
        timeoutMs: timeoutOf(section.config, request.timeoutMs),
        asksForEnd: false,
        over: (_, wasSent, over) => ({ ok: false, failure: statementOver(wasSent, over) }),
      });
      if (!found.isHere) return found.decision;
      const { held } = found;
      if (request.readOnly && !held.transaction.isReadOnly) return readsInWriting;
      const runHeld = (statement: AnalysedStatement) => transactions.run(held, statement);
      return yield* decideRun({ ...query, section: usable.of(found.section), runHeld }, headsOf);
    },
  };
}

/** For the one statement of a request. */
const [yes, no] = [[true], [false]] as const;

function* decideRun(query: Query, headsOf: HeadsOf): Pieces<Decision> {
  const { call, request, section, mayCompress, key } = query;
  const { config, context } = section;
  const maxRows = lowerLimit(request.maxRows ?? 0, config.maxRows);
  const wish: StatementWish = {
    caller: call.record.caller,
    sql: request.sql,
    params: request.params,
    paramsKey: 'params',
    readOnly: request.readOnly,
    isSingle: true,
    needsEffect: query.runHeld === null && key === null && !mayBeUndone(request),
    rollbackOnError: false,
    asksServer: false,
    showsWarnings: request.showWarnings,
    // The next statement of a shared session would clear the warnings.
    format: request.showWarnings
      ? null
      : `v1 ${query.type} ${nameLayout(request.layout)} ${maxRows}`,
  };
  const maxBytes = context.maxStatementBytes();
  const decided = yield* decideStatement(config, wish, maxBytes, context.catalogue());
  if (!decided.ok) return decided;
  const { statement } = decided;
  const type = hasJsonOnly(statement.analysis) ? chooseJson(call.request.headers) : query.type;
  if (type === null) return onlyJson;
  const way = decideWork(query, statement);
  if (!way.ok) return way;
  const { work } = way;
  const format = chooseFormat(type, request.layout, headsOf, {
    heads: headsOf('application/json', request.layout),
    section: context.sectionJson,
    requestId: call.record.requestId,
    rowModule: context.rowModule,
    maxRows,
    maxResultBytes: config.maxResultBytes,
    renames: !statement.isRead && !work.isReadOnly ? yes : no,
    cutsLongWrites: isWithRows(statement),
    listsWarnings: request.showWarnings ? yes : no,
    isDryRun: request.isDryRun,
    isKept: key !== null,
  });
  return {
    ok: true,
    kind: 'run',
    section,
    work,
    timeoutMs: request.timeoutMs,
    format,
    mayCompress,
    hintFor: createHint(request.params, 'params'),
    transaction: request.transaction,
  };
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

/** How a statement is run. */
type Way = { readonly ok: true; readonly work: Work } | Refused;

/** Decides how a statement is run: by itself, in the transaction that its client holds, or as a batch of one. */
function decideWork(
  { request, section: { config }, key, runHeld }: Query,
  statement: AnalysedStatement,
): Way {
  if (runHeld !== null) {
    const work = runHeld(statement);
    const whyNot = whyNotInTransaction(statement.analysis, work.isReadOnly);
    return whyNot === null ? { ok: true, work } : notInTransaction(whyNot);
  }
  const isUndone = mayBeUndone(request);
  if (key === null && !isUndone) return { ok: true, work: statement };
  if (key !== null && statement.isRead) return onlyReads;
  const decided = isUndone ? decideUndoable(statement, request) : decideSingle(statement);
  if (!decided.ok) return decided;
  const { batch } = decided;
  if (key === null) return { ok: true, work: batch };
  const timeoutMs = timeoutOf(config, request.timeoutMs);
  return whyUnfit(batch) ?? { ok: true, work: { ...batch, key: { ...key, timeoutMs } } };
}

const writes: ReadonlySet<string> = new Set(['INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'WITH']);

/** Whether its rows, if it has some, are those that it has written. */
function isWithRows({ isRead, analysis: { statements } }: AnalysedStatement): boolean {
  return !isRead && writes.has(statements[0]?.verb ?? '');
}

/** Statements that never have columns. Others may have some, which is known when they come. */
const withoutColumns: ReadonlySet<string> = new Set([
  ...['INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'LOAD', 'IMPORT', 'DO', 'SET', 'USE', 'KILL'],
  ...['CREATE', 'ALTER', 'DROP', 'TRUNCATE', 'RENAME', 'GRANT', 'REVOKE', 'FLUSH', 'RESET'],
  ...['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'SAVEPOINT', 'RELEASE', 'LOCK', 'UNLOCK'],
  ...['PREPARE', 'DEALLOCATE', 'INSTALL', 'UNINSTALL', 'PURGE', 'CHANGE'],
]);

/** A word of MariaDB's that gives a write columns, unless it is in a literal. */
const returning = /\breturning\b/i;

/** Whether the reply to one statement can be nothing but JSON, as far as its text shows. */
function hasJsonOnly({ sql, statements: [statement] }: Analysis): boolean {
  if (statement === undefined) return false;
  if (statement.isCall) return true;
  return withoutColumns.has(statement.verb) && !returning.test(sql);
}

// /v1/named: lists the named statements of a caller, and decides how a call of one is run and answered.
import type { GivenValues } from '../../../shared/named/call.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import type { Pieces } from '../../../shared/pieces.ts';
import type { FormatChoice } from '../../encode/format.ts';
import { chooseNamedBatch } from '../../encode/formats/named-batch.ts';
import { chooseNamedOne } from '../../encode/formats/named-one.ts';
import { createOneHeads, type V1Layout } from '../../encode/formats/v1-heads.ts';
import { chooseV1Json, type V1ReplyOptions } from '../../encode/formats/v1-json.ts';
import { chooseCsv, chooseNdjson } from '../../encode/formats/v1-stream.ts';
import { jsonType } from '../../encode/head.ts';
import type { Work } from '../../execution/executor.ts';
import { noSuchTransaction } from '../../execution/transaction-end.ts';
import type { OpenTransactions } from '../../execution/transactions/open-transactions.ts';
import { type Failure, refusal, refuse } from '../../failure/failure.ts';
import { sendText } from '../../http/failure-reply.ts';
import { announcesBody, type IncomingRequest } from '../../http/request.ts';
import { timeoutOf } from '../../request/exchange.ts';
import { claimsHeader } from '../../request/stated-claims.ts';
import type { Call, Decision, Handler, SqlEndpoint } from '../endpoint.ts';
import { findTransaction, readsInWriting, statementOver } from '../held-requests.ts';
import { parseBody } from '../json-text.ts';
import { decideNamed, type HeldPlace, type KeyOfCall, type NamedCall } from '../named/call.ts';
import { noSuchStatement, onlyPost } from '../named/failures.ts';
import type { NamedEntry, NamedStatements } from '../named/statements.ts';
import { type AllSections, Sections, type SqlSection, takesKeys } from '../sections.ts';
import { cachedHead } from './caching.ts';
import { chooseMediaType, keyHeader, type MediaType, mediaTypes, prefersGzip } from './headers.ts';
import { checkKey, keyOf } from './idempotency.ts';
import { layoutOf, rememberHeads } from './layout.ts';
import { decodeNamedPost, decodeNamedQuery, type NamedRequest } from './named-request.ts';

/** The path of the list. The name of a statement follows a slash, and `.csv` may follow the name. */
export const namedPath = '/v1/named';

const csvEnding = '.csv';
const bodyOfGet = refusal('BAD_REQUEST', 'A GET has no body here; use POST.');
const notAcceptable = refuse(
  'NOT_ACCEPTABLE',
  'Accept names no format that this statement can have.',
);
const keyOfGet = refuse(
  'IDEMPOTENCY_UNFIT',
  'Idempotency-Key is not allowed here: a GET only reads.',
);
const keyInTransaction = refuse(
  'NOT_IN_TRANSACTION',
  'Idempotency-Key is not allowed in a transaction that the client holds.',
);

/** The heads of one row, by how it looks. */
const oneHeads = {
  object: createOneHeads(layoutOf({ rows: 'object' })),
  array: createOneHeads(layoutOf({ rows: 'array' })),
} as const;

/** The list of what the caller may call. */
export function createNamedList(statements: NamedStatements): Handler {
  return (_request, response, _head, { requestId, caller }) => {
    const listed = statements.list(caller.client).map(({ statement, parameters }) => {
      const { name, kind, description, isRead, isKeyRequired } = statement;
      return {
        name,
        kind,
        description,
        read_only: isRead,
        key_required: isKeyRequired,
        parameters,
      };
    });
    response.addHeaders(['X-Request-ID', requestId]);
    sendText(response, JSON.stringify({ statements: listed }), jsonType);
  };
}

/** Creates the endpoint of one worker, for GET, HEAD and POST. */
export function createNamedEndpoint(
  all: AllSections,
  statements: NamedStatements,
  transactions: OpenTransactions,
): SqlEndpoint {
  const [{ config }] = all;
  const sections = new Sections(all, (served) => served);
  const mayHaveKeys = takesKeys(all);
  const formats = new Formats();
  return {
    kind: 'sql',
    check: (request) => checkRequest(request, mayHaveKeys),
    sourceOf: (request) => (isGetOrHead(request) ? 'url' : 'json'),
    *decide(call) {
      const { record, head, request } = call;
      const { caller } = record;
      const isGet = isGetOrHead(request);
      const { names } = sections.for(caller.client);
      const decoded = yield* decode(call, isGet, names);
      if (!decoded.ok) return decoded;
      const asked = decoded.request;
      const last = head.path.slice(namedPath.length + 1);
      const isCsv = last.endsWith(csvEnding);
      const name = isCsv ? last.slice(0, -csvEnding.length) : last;
      const entry = statements.find(caller.client, name, asked.section);
      if (entry === null) return { ok: false, failure: noSuchStatement };
      record.named = name;
      if (isGet && !entry.isForGet) return { ok: false, failure: onlyPost };
      const type = chooseType(entry, request, isCsv);
      if (type === null) return notAcceptable;
      const section = statements.sectionOf(caller.client, entry);
      const header = keyHeader(request.headers);
      if (header !== undefined && isGet) return keyOfGet;
      if (header !== undefined && asked.transaction !== null) return keyInTransaction;
      const { timeoutMs } = asked;
      const keyFor =
        header === undefined
          ? null
          : (owner: string) => findKey(section, header, call, owner, decoded, timeoutMs);
      const held = findHeld(transactions, call, section, asked);
      if (held !== null && 'decision' in held) return held.decision;
      const named: NamedCall = {
        entry,
        section,
        caller,
        given: asked.given,
        readOnly: asked.readOnly,
        format: `named ${type} ${asked.layout.rows} ${entry.statement.kind} ${name} ${section.config.maxRows}`,
      };
      const decided = yield* decideNamed(named, { keyFor, held });
      if (!decided.ok) return decided;
      const { work, explain, ownClaims } = decided;
      const { layout } = asked;
      const chosen = formats.choose(type, entry.statement, section, {
        layout,
        work,
        requestId: record.requestId,
      });
      const { maxAgeS } = entry.statement;
      const isCached = isGet && maxAgeS !== null && type !== 'application/x-ndjson';
      const format = isCached
        ? { ...chosen, head: cachedHead(chosen.head, maxAgeS, isPublic(request)) }
        : chosen;
      return {
        ok: true,
        kind: 'run',
        section,
        work,
        timeoutMs,
        format,
        mayCompress: config.compress && prefersGzip(request.headers),
        ignoresToken: isCached,
        hidesToken: isCached,
        explain,
        ownClaims,
        transaction: asked.transaction,
      };
    },
  };
}

/** Whether a reply may be given to any client: the request has no credentials. */
function isPublic({ headers }: IncomingRequest): boolean {
  return headers.authorization === undefined && headers[claimsHeader] === undefined;
}

/** A HEAD is decided on and run like a GET: its reply is the head alone (RFC 9110 section 9.3.2). */
function isGetOrHead({ method }: IncomingRequest): boolean {
  return method === 'GET' || method === 'HEAD';
}

function checkRequest(request: IncomingRequest, mayHaveKeys: boolean): Failure | null {
  if (isGetOrHead(request) && announcesBody(request)) return bodyOfGet;
  return checkKey(keyHeader(request.headers), mayHaveKeys);
}

function* decode(call: Call, isGet: boolean, names: Parameters<typeof decodeNamedPost>[1]) {
  return isGet
    ? yield* decodeNamedQuery(call.head.query ?? '', names)
    : decodeNamedPost(yield* parseBody(call.body, call.isLong), names);
}

const jsonOnly: readonly MediaType[] = ['application/json'];

/** Null: the statement has no format that the client accepts. */
function chooseType(
  { statement: { kind } }: NamedEntry,
  { headers }: IncomingRequest,
  isCsv: boolean,
): MediaType | null {
  const hasRows = kind === 'one' || kind === 'many';
  if (isCsv) return hasRows ? 'text/csv' : null;
  const isJson = !hasRows || keyHeader(headers) !== undefined;
  return chooseMediaType(headers.accept, isJson ? jsonOnly : mediaTypes);
}

function* findKey(
  { config }: SqlSection,
  header: string,
  { request, head }: Call,
  owner: string,
  decoded: { readonly exact: () => Readonly<Record<string, unknown>> },
  timeoutMs: number | null,
): Pieces<KeyOfCall> {
  const keyed = yield* keyOf(
    config,
    header,
    { request, head, record: { caller: { owner } } },
    decoded,
  );
  if (!keyed.ok) return keyed;
  if (keyed.key === null) throw new Error('a request with the header has a key');
  return { ok: true, key: { ...keyed.key, timeoutMs: timeoutOf(config, timeoutMs) } };
}

/** The transaction that a call runs in. Null: in none. */
function findHeld(
  transactions: OpenTransactions,
  { record: { caller } }: Call,
  { config }: SqlSection,
  { transaction, timeoutMs, readOnly }: NamedRequest<GivenValues>,
): HeldPlace | { readonly decision: Decision } | null {
  if (transaction === null) return null;
  const found = findTransaction(transactions, {
    token: transaction,
    sections: [config.section],
    caller,
    timeoutMs: timeoutOf(config, timeoutMs),
    asksForEnd: false,
    over: (_, wasSent, over) => ({ ok: false, failure: statementOver(wasSent, over) }),
  });
  if (!found.isHere) return { decision: found.decision };
  const { held } = found;
  if (readOnly && !held.transaction.isReadOnly) return { decision: readsInWriting };
  return {
    run: (statement) => transactions.run(held, statement),
    claim: (claims) =>
      held.transaction.bindClaims(claims) ? null : statementOver(false, noSuchTransaction),
  };
}

/** The parts of a call on which the format of its reply depends. */
type CallFormat = {
  readonly layout: V1Layout;
  readonly work: Work;
  readonly requestId: string;
};

/** The formats of the replies of one worker. */
class Formats {
  readonly #headsOf = rememberHeads();

  choose(
    type: MediaType,
    { kind, isRead, parts }: NamedStatement,
    { config, context }: SqlSection,
    { layout, work, requestId }: CallFormat,
  ): FormatChoice {
    const isKept = work.kind === 'batch' && work.key !== null;
    const options: V1ReplyOptions = {
      heads: this.#headsOf('application/json', layout),
      section: context.sectionJson,
      requestId,
      rowModule: context.rowModule,
      maxRows: kind === 'one' ? 1 : config.maxRows,
      maxResultBytes: config.maxResultBytes,
      renames: parts.map(() => !isRead),
      cutsLongWrites: !isRead,
      isDryRun: false,
      isKept,
    };
    if (kind === 'batch') return chooseNamedBatch({ ...options, parts });
    const isOne = kind === 'one';
    if (type === 'application/json') {
      return isOne
        ? chooseNamedOne({
            ...options,
            heads: oneHeads[layout.rows],
            isBare: layout.rows === 'object',
          })
        : chooseV1Json(options);
    }
    const streamed = {
      ...options,
      streamHeads: this.#headsOf(type, layout),
      needsOneRow: isOne,
    };
    const chosen = type === 'text/csv' ? chooseCsv(streamed) : chooseNdjson(streamed);
    return isOne ? { ...chosen, isWhole: true } : chosen;
  }
}

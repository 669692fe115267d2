// /db: decodes a request, and decides what is run for it and how its reply is written.
import type { Caller } from '../../../shared/clients/caller.ts';
import type { Config } from '../../../shared/config/config.ts';
import {
  chooseDbFormat,
  createDbHeads,
  type DbExtras,
  type DbReplyOptions,
} from '../../encode/formats/db.ts';
import { refusal } from '../../failure/failure.ts';
import type { RequestHead } from '../../http/head.ts';
import type { IncomingRequest } from '../../http/request.ts';
import { announcesBody } from '../../http/request.ts';
import { rulesOf } from '../../request/compat.ts';
import type { RunDecision } from '../../request/exchange.ts';
import type { Call, Reply, SqlEndpoint } from '../endpoint.ts';
import { parseBody } from '../json-text.ts';
import { createHint } from '../placeholder-hint.ts';
import { type AllSections, Sections, type SqlSection } from '../sections.ts';
import { decideStatement, nothingToRun, type StatementWish } from '../statement.ts';
import { describeServer, localMetadata, needsConnection } from './metadata.ts';
import { type DbRequest, decodeDb, parseDbQueryString } from './request.ts';

const bodyOfGet = refusal('BAD_REQUEST', 'A GET has no body here; use POST.');

const takesNoKey = refusal(
  'IDEMPOTENCY_UNFIT',
  '/db does not take an Idempotency-Key: use /v1/query or /v1/batch.',
);

/** Creates the endpoint of one worker, for GET and POST. */
export function createDbEndpoint(all: AllSections): SqlEndpoint {
  const rules = rulesOf[all[0].config.compat];
  const sections = new Sections(all, createKept);
  const sourceOf = ({ method }: IncomingRequest, { query }: RequestHead) => {
    if (method === 'GET') return 'url';
    return rules.objectInPostUrl && query !== null && query !== '' ? 'ignored body' : 'json';
  };
  const parse = ({ request, head, body, isLong }: Call) =>
    sourceOf(request, head) === 'json'
      ? parseBody(body, isLong, true)
      : parseDbQueryString(head.query ?? '', rules, isLong);
  return {
    kind: 'sql',
    check: (request) => {
      if (request.headers['idempotency-key'] !== undefined) return takesNoKey;
      return request.method === 'GET' && announcesBody(request) ? bodyOfGet : null;
    },
    sourceOf,
    *decide(call) {
      const { caller } = call.record;
      const usable = sections.for(caller.client);
      const decoded = decodeDb(yield* parse(call), usable.names, rules);
      if (!decoded.ok) return decoded;
      const { request } = decoded;
      const kept = usable.of(request.section);
      const { config, context } = kept;
      const { sql, metadata } = request;
      if (sql === null) {
        return needsConnection(metadata)
          ? runOf(kept, request, nothingToRun)
          : describeLocally(config, metadata);
      }
      const wish = wishOf(request, sql, caller);
      const maxBytes = context.maxStatementBytes();
      const decided = yield* decideStatement(config, wish, maxBytes, context.catalogue());
      return decided.ok ? runOf(kept, request, decided.statement) : decided;
    },
  };
}

/** How replies are written: exact numbers as JSON's own, or as strings. */
type ReplyVariants = { readonly numbers: DbReplyOptions; readonly strings: DbReplyOptions };

/** The values that are kept for a section. */
type Kept = SqlSection & { readonly replies: ReplyVariants };

function createKept({ config, context }: SqlSection): Kept {
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

function describeLocally(config: Config, metadata: DbRequest['metadata']): Reply {
  const keys = localMetadata(config, metadata).map(([key, json]) => `"${key}":${json}`);
  return { ok: true, kind: 'reply', json: `{${keys.join(',')}}` };
}

function runOf(kept: Kept, request: DbRequest, work: RunDecision['work']): RunDecision {
  const { config, replies } = kept;
  const options = request.exactNumbersAsStrings ? replies.strings : replies.numbers;
  const format = chooseDbFormat(options, extrasOf(config, request));
  const hintFor = createHint(request.params, 'PARAMS');
  const { timeoutMs } = request;
  return { ok: true, kind: 'run', section: kept, work, timeoutMs, format, hintFor };
}

/** How a request to /db wants its text to be run. A reply with more than the results is not shared. */
export function wishOf(request: DbRequest, sql: string, caller: Caller): StatementWish {
  const { params, readOnly, rollbackOnError, metadata, exactNumbersAsStrings } = request;
  const isAlone = rollbackOnError || metadata.length > 0;
  return {
    caller,
    sql,
    params,
    paramsKey: 'PARAMS',
    readOnly,
    isSingle: false,
    needsEffect: false,
    rollbackOnError,
    asksServer: needsConnection(metadata),
    showsWarnings: false,
    format: isAlone ? null : exactNumbersAsStrings ? 'db strings' : 'db numbers',
  };
}

function extrasOf(config: Config, { metadata, rollbackOnError }: DbRequest): DbExtras | null {
  if (metadata.length === 0 && !rollbackOnError) return null;
  return { describe: (facts) => describeServer(config, metadata, facts), rollbackOnError };
}

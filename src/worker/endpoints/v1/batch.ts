import { chooseV1Batch } from '../../encode/formats/v1-batch.ts';
import type { ResultHeads } from '../../encode/result-rows.ts';
import type { IdempotencyKey } from '../../execution/idempotency/ledger-entry.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import { sendFailure } from '../../http/reply.ts';
import { Exchange } from '../../request/exchange.ts';
import type { Handler } from '../../request/router.ts';
import { readJsonBody } from '../json-body.ts';
import { type Asker, workThen } from '../long-requests.ts';
import { type AllServed, type Served, ServedSections, takesKeys } from '../served-sections.ts';
import { chooseMediaType, prefersGzip } from './accept.ts';
import {
  type BatchRequest,
  type DecodedBatch,
  decodeBatch,
  decodeBatchInPieces,
} from './batch-request.ts';
import { type DecidedBatch, decideBatch, decideBatchInPieces } from './decide-batch.ts';
import { checkHeaders, keyHeader } from './headers.ts';
import { keyInPieces, keyOf, whyUnfit } from './idempotency.ts';
import { rememberHeads } from './remembered-heads.ts';

const onlyJson = refusal('NOT_ACCEPTABLE', 'The reply to a batch is application/json.');

/** Creates the endpoint of one worker. */
export function createBatchEndpoint(all: AllServed): Handler {
  const [{ config, context }] = all;
  const sections = new ServedSections(all, (served) => served);
  const mayHaveKeys = takesKeys(all);
  const { observe, longWork } = context;
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe, longWork };
  const headsOf = rememberHeads();
  return (request, response, { path }, record) => {
    const { headers, method = '' } = request;
    const isJson = chooseMediaType(headers.accept, ['application/json']) !== null;
    const refused = checkHeaders(headers, mayHaveKeys) ?? (isJson ? null : onlyJson);
    if (refused !== null) {
      response.shouldKeepAlive = false;
      sendFailure(response, refused, record.requestId);
      return;
    }
    const mayCompress = config.compress && prefersGzip(headers['accept-encoding'] as string);
    const takeDecoded = (decoded: DecodedBatch, isLong: boolean) => {
      if (decoded.ok) {
        const heads = headsOf('application/json', decoded.request.layout);
        const served = sections.of(decoded.request.section);
        const asker = { response, record };
        const take = (key: IdempotencyKey | Failure | null) => {
          if (key !== null && 'code' in key) sendFailure(response, key, record.requestId);
          else {
            const asked = { heads, request: decoded.request, mayCompress, key };
            decideThenAnswer(served, asked, isLong, asker);
          }
        };
        const keyed = () => ({ method, path, fields: decoded.exact() });
        const header = keyHeader(headers);
        if (isLong) workThen(context, asker, keyInPieces(served.config, header, keyed()), take);
        else take(keyOf(served.config, header, keyed));
        return;
      }
      const { code, message, statement } = decoded.fault;
      const failure: Failure = {
        ...refusal(code, message),
        ...(statement !== undefined && { place: { statement } }),
      };
      sendFailure(response, failure, record.requestId);
    };
    readJsonBody(request, response, record, bodies, (body, parsed) => {
      if (parsed === null) takeDecoded(decodeBatch(body, sections.names), false);
      else {
        const decoding = decodeBatchInPieces(body, sections.names, parsed);
        workThen(context, { response, record }, decoding, (decoded) => takeDecoded(decoded, true));
      }
    });
  };
}

/** One request, decoded. */
type Asked = {
  readonly heads: ResultHeads;
  readonly request: BatchRequest;
  readonly mayCompress: boolean;
  /** Null: it has none. */
  readonly key: IdempotencyKey | null;
};

function decideThenAnswer(served: Served, asked: Asked, isLong: boolean, asker: Asker): void {
  const { config, context } = served;
  const mostBytes = context.mostStatementBytes();
  const catalogue = context.catalogue();
  const use = (decided: DecidedBatch) => answer(served, asked, decided, asker);
  if (isLong) {
    const deciding = decideBatchInPieces(config, asked.request, mostBytes, catalogue);
    workThen(context, asker, deciding, use);
  } else use(decideBatch(config, asked.request, mostBytes, catalogue));
}

function answer(
  { config, context }: Served,
  { heads, request, mayCompress, key }: Asked,
  decided: DecidedBatch,
  { response, record }: Asker,
): void {
  if (!decided.ok) {
    sendFailure(response, decided.failure, record.requestId);
    return;
  }
  const after = context.tokens.decode(response.req.headers);
  if (after !== null && 'code' in after) {
    sendFailure(response, after, record.requestId);
    return;
  }
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(request.timeoutMs ?? most, most);
  const work = { ...decided.batch, key: key === null ? null : { ...key, timeoutMs } };
  const unfit = key === null ? null : whyUnfit(work);
  if (unfit !== null) {
    sendFailure(response, unfit, record.requestId);
    return;
  }
  const format = chooseV1Batch({
    section: context.sectionJson,
    requestId: record.requestId,
    heads,
    rowModule: context.rowModule,
    maxRows: config.maxRows,
    maxResultBytes: config.maxResultBytes,
    // Of an atomic batch nothing is executed in the end if the reply to a read in it is refused.
    renames: work.steps.map(
      ({ statement }) => !work.isReadOnly && !(work.isAtomic && statement.isRead),
    ),
    isDryRun: false,
    isKept: key !== null,
  });
  new Exchange(context, { work, timeoutMs, record, format, mayCompress, after }, response).start();
}

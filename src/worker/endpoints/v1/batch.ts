// /v1/batch: decides how several statements are run, as one transaction or each by itself.
import type { Caller } from '../../../shared/clients/caller.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { chooseV1Batch } from '../../encode/formats/v1-batch.ts';
import { refusal } from '../../failure/failure.ts';
import { type RunDecision, timeoutOf } from '../../request/exchange.ts';
import type { SqlEndpoint } from '../endpoint.ts';
import { parseBody } from '../json-text.ts';
import { keyRequired, withOwnCode } from '../named/failures.ts';
import type { NamedStatements } from '../named/statements.ts';
import { createHint } from '../placeholder-hint.ts';
import { type AllSections, Sections, takesKeys } from '../sections.ts';
import { type AskedStatement, type BatchRequest, decodeBatch } from './batch-request.ts';
import { decideBatch } from './decide-batch.ts';
import { checkHeaders, chooseJson, keyHeader, prefersGzip } from './headers.ts';
import { keyOf, noKey, whyUnfit } from './idempotency.ts';
import { rememberHeads } from './layout.ts';

const onlyJson = refusal('NOT_ACCEPTABLE', 'The reply to a batch is application/json.');

/** Creates the endpoint of one worker. */
export function createBatchEndpoint(all: AllSections, statements: NamedStatements): SqlEndpoint {
  const sections = new Sections(all, (served) => served);
  const mayHaveKeys = takesKeys(all);
  const { compress } = all[0].config;
  const headsOf = rememberHeads();
  return {
    kind: 'sql',
    check: (request) =>
      checkHeaders(request, mayHaveKeys) ??
      (chooseJson(request.headers) === null ? onlyJson : null),
    *decide(call) {
      const { headers } = call.request;
      const parsed = yield* parseBody(call.body, call.isLong);
      const { caller } = call.record;
      const usable = sections.for(caller.client);
      const decoded = yield* decodeBatch(parsed, usable.names);
      if (!decoded.ok) return decoded;
      const { request } = decoded;
      const section = usable.of(request.section ?? sectionOfNamed(request, statements, caller));
      const { config, context } = section;
      const decided = yield* decideBatch(request, { caller, section, statements });
      if (!decided.ok) return decided;
      const header = keyHeader(headers);
      const owner = `${caller.owner}${decided.claims}`;
      const owned = { request: call.request, head: call.head, record: { caller: { owner } } };
      const keyed = header === undefined ? noKey : yield* keyOf(config, header, owned, decoded);
      if (!keyed.ok) return keyed;
      const { key } = keyed;
      const { named, ownClaims } = decided;
      const unkeyed = key === null ? named.findIndex((one) => one?.isKeyRequired === true) : -1;
      if (unkeyed >= 0) {
        return { ok: false, failure: { ...keyRequired, place: { statement: unkeyed } } };
      }
      const { timeoutMs } = request;
      const keep = key === null ? null : { ...key, timeoutMs: timeoutOf(config, timeoutMs) };
      const work = { ...decided.batch, key: keep };
      const unfit = key === null ? null : whyUnfit(work);
      if (unfit !== null) return unfit;
      const format = chooseV1Batch({
        section: context.sectionJson,
        requestId: call.record.requestId,
        heads: headsOf('application/json', request.layout),
        rowModule: context.rowModule,
        maxRows: config.maxRows,
        maxResultBytes: config.maxResultBytes,
        // Nothing of an atomic batch is executed in the end if the reply to a read in it is refused.
        renames: work.steps.map(
          ({ statement }) => !work.isReadOnly && !(work.isAtomic && statement.isRead),
        ),
        listsWarnings: work.steps.map(({ statement }) => statement.showsWarnings),
        isDryRun: false,
        isKept: key !== null,
      });
      const mayCompress = compress && prefersGzip(headers);
      const hintFor: RunDecision['hintFor'] = (error, statement) =>
        createHint(paramsOf(request.statements[statement]), 'params')(error);
      const explain: RunDecision['explain'] = (failure) =>
        withOwnCode(failure, (at) => {
          const statement = named[at] ?? null;
          return statement === null ? null : { statement, part: 0 };
        });
      const reply = { format, mayCompress, hintFor, explain };
      return { ok: true, kind: 'run', section, work, timeoutMs, ownClaims, ...reply };
    },
  };
}

function paramsOf(asked: AskedStatement | undefined): Parameters | null {
  return asked?.kind === 'sql' ? asked.params : null;
}

/** The section of the first named statement that the caller may call; null: there is none. */
function sectionOfNamed(
  { statements: asked }: BatchRequest,
  statements: NamedStatements,
  { client }: Caller,
): string | null {
  for (const one of asked) {
    const entry = one.kind === 'named' ? statements.find(client, one.name, null) : null;
    if (entry !== null) return entry.section;
  }
  return null;
}

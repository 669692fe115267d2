// /v1/transaction, /v1/transaction/commit and /v1/transaction/rollback: begin and end a transaction that its client holds.
import type { Pieces } from '../../../shared/pieces.ts';
import type { Ending } from '../../../shared/process/commit-endings.ts';
import { chooseObject } from '../../encode/formats/object.ts';
import type { OpenStep } from '../../execution/executor.ts';
import type { TransactionOver } from '../../execution/transaction-end.ts';
import type { RolledBack } from '../../execution/transactions/jobs.ts';
import type { OpenTransactions } from '../../execution/transactions/open-transactions.ts';
import { refusal } from '../../failure/failure.ts';
import type { RunDecision } from '../../request/exchange.ts';
import { timeoutOf } from '../../request/exchange.ts';
import type { Call, Decision, SqlEndpoint } from '../endpoint.ts';
import type { Decoded } from '../fields.ts';
import { commitOver, findTransaction } from '../held-requests.ts';
import { type ParsedObject, parseBody } from '../json-text.ts';
import {
  type AllSections,
  type SectionNames,
  Sections,
  type SqlSection,
  type UsableSections,
} from '../sections.ts';
import { chooseJson } from './headers.ts';
import { decodeBegin, decodeEnd } from './transaction-request.ts';

type Verb = 'commit' | 'rollback';

const onlyJson = refusal('NOT_ACCEPTABLE', 'The reply is application/json.');
const created = 201;

/** Begins a transaction. */
export function createBegin(all: AllSections, transactions: OpenTransactions): SqlEndpoint {
  const sections = new Sections(all, (served) => served);
  return endpointOf(sections, decodeBegin, (call, usable, request) => {
    const { isolation, readOnly, timeoutMs } = request;
    const section = usable.of(request.section);
    const { home } = section.context;
    const isReadOnly = readOnly || section.config.readOnly;
    const wish = { isolation, isReadOnly, hasSnapshot: false };
    const step = transactions.begin(home, wish, call.record.caller.transactionOwner);
    const describe = () => ({ transaction: step.token, idle_timeout_ms: home.times.idleMs });
    return runStep(section, call, timeoutMs, { step, status: created, describe });
  });
}

/** Ends a transaction: by COMMIT, or by ROLLBACK. */
export function createEnd(
  all: AllSections,
  transactions: OpenTransactions,
  verb: Verb,
): SqlEndpoint {
  const sections = new Sections(all, (served) => served);
  return endpointOf(sections, decodeEnd, (call, usable, { section, transaction, timeoutMs }) => {
    const names = section === null ? usable.names.usable : [section];
    const hasTokens = names.some((name) => usable.of(name).context.tokens !== null);
    const found = findTransaction(transactions, {
      token: transaction,
      sections: names,
      caller: call.record.caller,
      timeoutMs: timeoutOf(usable.of(section).config, timeoutMs),
      asksForEnd: true,
      over: (ending, wasSent, over) =>
        ending === 'committed'
          ? decideCommitted(verb, hasTokens)
          : decideOver(verb, ending, wasSent, over),
    });
    if (!found.isHere) return found.decision;
    const end = stepOf(transactions, found.held, verb);
    return { ...runStep(usable.of(found.section), call, timeoutMs, end), transaction };
  });
}

/** A step, and the object that is its reply: asked for when the step has succeeded. */
type Step = { readonly step: OpenStep; readonly status: number; readonly describe: () => object };

function stepOf(
  transactions: OpenTransactions,
  held: Parameters<OpenTransactions['commit']>[0],
  verb: Verb,
): Step {
  if (verb === 'commit') {
    return { step: transactions.commit(held), status: 200, describe: () => committed };
  }
  const step = transactions.rollback(held);
  return { step, status: 200, describe: () => undoneReplies[step.job.undoes] };
}

function runStep(
  section: SqlSection,
  { record: { requestId } }: Call,
  timeoutMs: number | null,
  { step: work, status, describe }: Step,
): RunDecision {
  const format = chooseObject({ status, requestId, describe });
  return { ok: true, kind: 'run', section, work, timeoutMs, format };
}

const committed = { committed: true };

const undoneReplies: Readonly<Record<RolledBack, object>> = {
  all: { rolled_back: true },
  /** Tables without transactions were changed, or a statement had ended the transaction before. */
  'a part': { rolled_back: false, outcome: 'partial' },
  nothing: { rolled_back: false, committed: true },
  /** Its connection was lost, so that it is not known what it left, or this gateway knows no such transaction. */
  unknown: { rolled_back: false, outcome: 'unknown' },
};

/** One that was committed can be committed again. The position of its COMMIT is not known any more. */
function decideCommitted(verb: Verb, hasTokens: boolean): Decision {
  const object = verb === 'commit' ? committed : undoneReplies.nothing;
  return reply(object, hasTokens ? ['X-Consistency', 'unverified'] : []);
}

/** One that is over and was not committed can be rolled back again. */
function decideOver(
  verb: Verb,
  ending: Exclude<Ending, 'committed'>,
  wasSent: boolean,
  over: TransactionOver,
): Decision {
  if (verb === 'rollback' && ending !== 'unknown') {
    return reply(undoneReplies[over.end === 'no such' ? 'unknown' : undoneBy[ending]]);
  }
  return { ok: false, failure: commitOver(ending, wasSent, over) };
}

const undoneBy = {
  over: 'all',
  partial: 'a part',
  unproven: 'unknown',
} as const satisfies Readonly<Partial<Record<Ending, RolledBack>>>;

function reply(object: object, headers: readonly string[] = []): Decision {
  return { ok: true, kind: 'reply', json: JSON.stringify(object), headers };
}

/** The common part of the three: their bodies are decoded, and their replies are JSON. */
function endpointOf<Request>(
  sections: Sections<SqlSection>,
  decode: (parsed: ParsedObject, sections: SectionNames) => Decoded<Request>,
  decideOn: (call: Call, usable: UsableSections<SqlSection>, request: Request) => Decision,
): SqlEndpoint {
  return {
    kind: 'sql',
    check: ({ headers }) => (chooseJson(headers) === null ? onlyJson : null),
    *decide(call): Pieces<Decision> {
      const usable = sections.for(call.record.caller.client);
      const decoded = decode(yield* parseBody(call.body, call.isLong), usable.names);
      return decoded.ok ? decideOn(call, usable, decoded.request) : decoded;
    },
  };
}

// /v1/transaction, /v1/transaction/commit and /v1/transaction/rollback: a transaction that its client holds begins and ends.
// Must not know how statements run in it.

import type { Ending } from '../../../shared/process/commit-endings.ts';
import { chooseObject } from '../../encode/formats/object.ts';
import { jsonType } from '../../encode/head.ts';
import type { OpenStep } from '../../execution/executor.ts';
import type { RolledBack } from '../../execution/transactions/ending-jobs.ts';
import type { HeldTransactions } from '../../execution/transactions/held-transactions.ts';
import { type Failure, refusal } from '../../failure/failure.ts';
import { sendFailure } from '../../http/reply.ts';
import { credentialOf } from '../../request/credential.ts';
import { Exchange } from '../../request/exchange.ts';
import type { Handler } from '../../request/router.ts';
import {
  commitOver,
  findTransaction,
  type HeldRequests,
  type ReadRequest,
  refuseHeld,
} from '../held-requests.ts';
import { readJsonBody } from '../json-body.ts';
import type { ParsedObject } from '../json-text.ts';
import { sendText } from '../send-text.ts';
import { type AllServed, type Served, ServedSections } from '../served-sections.ts';
import { chooseMediaType } from './accept.ts';
import { type Decoded, decodeBegin, decodeEnd, type EndRequest } from './transaction-request.ts';

/** Who ends a transaction, and how. */
type Verb = 'commit' | 'rollback';

const onlyJson = refusal('NOT_ACCEPTABLE', 'The reply is application/json.');
const created = 201;

/** Begins a transaction. */
export function createBegin(all: AllServed, { transactions }: HeldRequests): Handler {
  return reading(
    all,
    decodeBegin,
    ({ section, isolation, readOnly, timeoutMs }, sections, read) => {
      const served = sections.of(section);
      const { home } = served.context;
      const isReadOnly = readOnly || served.config.readOnly;
      const wish = { isolation, isReadOnly, hasSnapshot: false };
      const step = transactions.begin(home, wish, credentialOf(read.request.headers));
      const tell = () => ({ transaction: step.token, idle_timeout_ms: home.times.idleMs });
      run(served, { step, timeoutMs, status: created, tell }, read);
    },
  );
}

/** Ends a transaction: by COMMIT, or by ROLLBACK. */
export function createEnd(all: AllServed, requests: HeldRequests, verb: Verb): Handler {
  return reading(all, decodeEnd, (asked, sections, read) => {
    const names = asked.section === null ? sections.names : [asked.section];
    findTransaction(requests, asked.transaction, names, read, {
      asksForEnd: true,
      held: (held, section) => {
        const { transactions } = requests;
        end(sections.of(section), asked, stepOf(transactions, held, verb), read);
      },
      over: (ending, wasSent) => tellEnding(verb, ending, wasSent, read),
    });
  });
}

/** A step that ends a transaction, and what is told of it afterwards. */
type EndStep = { readonly step: OpenStep; readonly tell: () => object };

function stepOf(
  transactions: HeldTransactions,
  held: Parameters<HeldTransactions['commit']>[0],
  verb: Verb,
): EndStep {
  if (verb === 'commit') return { step: transactions.commit(held), tell: () => committed };
  const step = transactions.rollback(held);
  return { step, tell: () => toldOfUndone[step.job.undoes] };
}

const committed = { committed: true };

const toldOfUndone: Readonly<Record<RolledBack, object>> = {
  all: { rolled_back: true },
  /** Tables without transactions were changed, or a statement had ended the transaction before. */
  'a part': { rolled_back: false, outcome: 'partial' },
  nothing: { rolled_back: false, committed: true },
  /** It was not committed; what it may have left cannot be told, since its connection was lost. */
  unknown: { rolled_back: false, outcome: 'unknown' },
};

function end(
  served: Served,
  { timeoutMs }: EndRequest,
  { step, tell }: EndStep,
  read: ReadRequest,
) {
  run(served, { step, timeoutMs, status: 200, tell }, read);
}

/** One that is over can be rolled back again, and committed again where it was; of an unknown one nothing is said but that. */
function tellEnding(verb: Verb, ending: Ending, wasSent: boolean, read: ReadRequest): void {
  const told = toldOf(verb, ending, wasSent);
  if ('code' in told) refuseHeld(read, told);
  else {
    read.response.setHeader('X-Request-ID', read.record.requestId);
    sendText(read.response, JSON.stringify(told), jsonType);
  }
}

function toldOf(verb: Verb, ending: Ending, wasSent: boolean): Failure | object {
  if (ending === 'committed') return verb === 'commit' ? committed : toldOfUndone.nothing;
  if (verb === 'rollback' && ending === 'over') return toldOfUndone.all;
  if (verb === 'rollback' && ending === 'partial') return toldOfUndone['a part'];
  if (verb === 'rollback' && ending === 'unproven') return toldOfUndone.unknown;
  return commitOver(ending, wasSent);
}

/** A step with its reply. */
type Told = {
  readonly step: OpenStep;
  readonly timeoutMs: number | null;
  readonly status: number;
  readonly tell: () => object;
};

function run(
  { config, context }: Served,
  { step, timeoutMs: asked, status, tell }: Told,
  { response, record }: ReadRequest,
): void {
  const after = context.tokens.decode(response.req.headers);
  if (after !== null && 'code' in after) {
    sendFailure(response, after, record.requestId);
    return;
  }
  const most = config.statementTimeoutMs;
  const timeoutMs = Math.min(asked ?? most, most);
  const format = chooseObject({ status, requestId: record.requestId, describe: tell });
  new Exchange(context, { work: step, timeoutMs, record, format, after }, response).start();
}

/** A handler of bodies that are read and decoded. */
function reading<Request extends { readonly timeoutMs: number | null }>(
  all: AllServed,
  decode: (
    body: Buffer,
    sections: readonly string[],
    known: ParsedObject | null,
  ) => Decoded<Request>,
  answer: (request: Request, sections: ServedSections<Served>, read: ReadRequest) => void,
): Handler {
  const [{ config, context }] = all;
  const sections = new ServedSections(all, (served) => served);
  const { observe, longWork } = context;
  const bodies = { maxRequestBytes: config.maxRequestBytes, observe, longWork };
  return (request, response, _head, record) => {
    if (chooseMediaType(request.headers.accept, ['application/json']) === null) {
      response.shouldKeepAlive = false;
      sendFailure(response, onlyJson, record.requestId);
      return;
    }
    readJsonBody(request, response, record, bodies, (body, parsed) => {
      const decoded = decode(body, sections.names, parsed);
      if (decoded.ok) {
        const most = config.statementTimeoutMs;
        const timeoutMs = Math.min(decoded.request.timeoutMs ?? most, most);
        answer(decoded.request, sections, { request, response, record, body, timeoutMs });
        return;
      }
      const { code, message } = decoded.fault;
      sendFailure(response, refusal(code, message), record.requestId);
    });
  };
}

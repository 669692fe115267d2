// Transactions of drivers: begun, continued and ended as those of /v1/transaction are.
// Must not know how they are held.
import type { Analysis } from '../../../shared/sql/analyse.ts';
import { type Isolation, whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { OpenStep } from '../../execution/executor.ts';
import type { Held, HeldTransactions } from '../../execution/transactions/held-transactions.ts';
import { refusal } from '../../failure/failure.ts';
import type { OutgoingReply } from '../../http/reply.ts';
import type { IncomingRequest } from '../../http/request.ts';
import type { RequestRecord } from '../../observe/observation.ts';
import { credentialOf } from '../../request/credential.ts';
import { Exchange } from '../../request/exchange.ts';
import {
  commitOver,
  findTransaction,
  type HeldAnswers,
  type HeldRequests,
  refuseHeld,
  statementOver,
} from '../held-requests.ts';
import type { Served } from '../served-sections.ts';
import type { DriverReplies } from './replies.ts';
import type { DriverSession } from './session.ts';
import { decideDriver } from './statement.ts';

/** One request of a driver's that concerns a transaction. Whoever gets it answers it, through `replies`. */
export type DriverCall = {
  readonly served: Served;
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  /** As it was read: another worker may have to be given it. */
  readonly body: Buffer;
  /** As the request brought it. */
  readonly session: DriverSession;
  readonly replies: DriverReplies;
};

/** What BEGIN asks for; null: the server's own. */
export type BeginStatement = {
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean | null;
  readonly withConsistentSnapshot: boolean;
};

/** Holds transactions of drivers. All but `begin` are called with sessions that are in one, as they say. */
export type DriverTransactions = {
  /** Answers with a session that is in the transaction; its `next` is used up. */
  readonly begin: (call: DriverCall, wish: BeginStatement) => void;
  /** Runs one statement in it, or fails: never outside of it. */
  readonly run: (call: DriverCall, analysis: Analysis) => void;
  /** Answers with a session that is in none; fails where the transaction is lost. */
  readonly commit: (call: DriverCall) => void;
  /** The same, and succeeds also where it is lost, but after a COMMIT whose answer is not known. */
  readonly rollback: (call: DriverCall) => void;
};

/** Holds them as /v1/transaction does. */
export function createDriverTransactions(held: HeldRequests): DriverTransactions {
  return {
    begin: (call, wish) => begin(held.transactions, call, wish),
    run: (call, analysis) => {
      findHeld(held, call, {
        asksForEnd: false,
        held: (one) => runIn(held.transactions, one, call, analysis),
        over: (_ending, wasSent) => refuseHeld(call, statementOver(wasSent)),
      });
    },
    commit: (call) => {
      findHeld(held, call, {
        asksForEnd: true,
        held: (one) => runStep(call, held.transactions.commit(one), sessionBehind(held, call)),
        over: (ending, wasSent) => {
          if (ending === 'committed') call.replies.done(outside(call.session));
          else refuseHeld(call, commitOver(ending, wasSent));
        },
      });
    },
    rollback: (call) => {
      findHeld(held, call, {
        asksForEnd: true,
        held: (one) => {
          runStep(call, held.transactions.rollback(one), () => outside(call.session));
        },
        over: (ending) => {
          if (ending === 'unknown') refuseHeld(call, commitOver(ending, false));
          else call.replies.done(outside(call.session));
        },
      });
    },
  };
}

function begin(transactions: HeldTransactions, call: DriverCall, wish: BeginStatement): void {
  const { served, request, session } = call;
  const { home } = served.context;
  const isReadOnly = wish.isReadOnly === true || served.config.readOnly;
  const asked = {
    isolation: wish.isolation,
    isReadOnly,
    hasSnapshot: wish.withConsistentSnapshot,
  };
  const credential = credentialOf(request.headers);
  const step = transactions.begin(home, asked, credential);
  const bearer = { section: home.section, credential };
  const isHeld = () => transactions.find(step.token, bearer).kind === 'held';
  runStep(call, step, () => (isHeld() ? { ...session, transaction: step.token } : session));
}

function findHeld(held: HeldRequests, call: DriverCall, answers: HeldAnswers): void {
  const { section } = call.served.context.home;
  const timeoutMs = call.served.config.statementTimeoutMs;
  const read = { ...call, timeoutMs };
  findTransaction(held, call.session.transaction ?? '', [section], read, answers);
}

function runIn(
  transactions: HeldTransactions,
  one: Held,
  call: DriverCall,
  analysis: Analysis,
): void {
  const decided = decideDriver(call.served, analysis);
  if (!decided.ok) {
    refuseHeld(call, decided.failure);
    return;
  }
  const reason = whyNotInTransaction(analysis, one.transaction.isReadOnly);
  if (reason !== null) {
    const message = `The statement is not taken in a transaction: ${reason}.`;
    refuseHeld(call, refusal('NOT_IN_TRANSACTION', message));
  } else runStep(call, transactions.run(one, decided.statement), () => call.session, analysis);
}

/** A transaction is left by its COMMIT; what has failed is left by ROLLBACK alone. */
function sessionBehind({ transactions }: HeldRequests, { served, request, session }: DriverCall) {
  const { section } = served.context.home;
  const bearer = { section, credential: credentialOf(request.headers) };
  return (): DriverSession => {
    const found = transactions.find(session.transaction ?? '', bearer);
    return found.kind === 'over' && found.ending === 'committed' ? outside(session) : session;
  };
}

function outside(session: DriverSession): DriverSession {
  return { ...session, transaction: null };
}

/**
 * @param session as it is when the reply ends
 * @param analysis null: the step is none of the client's statements
 */
function runStep(
  call: DriverCall,
  step: OpenStep,
  session: () => DriverSession,
  analysis: Analysis | null = null,
): void {
  const { served, response, record, replies } = call;
  const { config, context } = served;
  const format = replies.format(analysis, session);
  const timeoutMs = config.statementTimeoutMs;
  new Exchange(context, { work: step, timeoutMs, record, format, after: null }, response).start();
}

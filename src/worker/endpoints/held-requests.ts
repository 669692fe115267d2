// Requests that name a transaction: finds it, passes requests on to the worker that has it, and says what became of a lost one.

import type { Caller } from '../../shared/clients/caller.ts';
import type { Ending } from '../../shared/process/commit-endings.ts';
import {
  type Left,
  noCause,
  noSuchTransaction,
  type TransactionOver,
} from '../execution/transaction-end.ts';
import type { Found, OpenTransactions } from '../execution/transactions/open-transactions.ts';
import { type Failure, type Outcome, refusal, refuse } from '../failure/failure.ts';
import { forwardRequest, type Unanswered } from '../http/forward.ts';
import type { Peers } from '../http/peers.ts';
import {
  commitRunning,
  connectionLost,
  deadlineElsewhere,
  transactionEnded,
} from '../request/run-failure.ts';
import type { Call, Decision, PassOn, WhenOver } from './endpoint.ts';

/** How long after the deadline the other worker may answer: a stop may take a second to undo a statement. */
const answerMarginMs = 2000;

/** The parts with which endpoints find transactions. */
export type HeldRequests = {
  readonly transactions: OpenTransactions;
  /** The socket at which the worker with that process id accepts requests that are passed on. */
  readonly socketOf: (pid: number) => string;
  readonly peers: Peers;
};

type Held = Extract<Found, { kind: 'held' }>['held'];

/** A request for a transaction. */
export type HeldRequest = {
  readonly token: string;
  /** The sections that it may be of. */
  readonly sections: readonly string[];
  readonly caller: Caller;
  readonly timeoutMs: number;
  readonly asksForEnd: boolean;
  readonly over: WhenOver;
};

/** A transaction that this worker has, and its section; or what is done with a request for another one. */
export type FoundHere =
  | { readonly isHere: true; readonly held: Held; readonly section: string }
  | { readonly isHere: false; readonly decision: Decision };

/** A request that must only read, in a transaction that may write. */
export const readsInWriting = refuse(
  'NOT_IN_TRANSACTION',
  'read_only and QUERY need a transaction that was begun with read_only, and this one may write.',
);

/** Finds a request's transaction. */
export function findTransaction(transactions: OpenTransactions, request: HeldRequest): FoundHere {
  const { token, sections, timeoutMs, asksForEnd, over } = request;
  const { transactionOwner: owner } = request.caller;
  let ending: Ending = 'over';
  let known: TransactionOver | null = null;
  for (const section of sections) {
    const found = transactions.find(token, { section, owner });
    switch (found.kind) {
      case 'held':
        return { isHere: true, held: found.held, section };
      case 'elsewhere': {
        const { name } = found;
        return {
          isHere: false,
          decision: {
            ok: true,
            kind: 'pass on',
            name,
            transaction: token,
            timeoutMs,
            asksForEnd,
            over,
          },
        };
      }
      case 'over':
        if (found.ending !== 'over') ending = found.ending;
        if (known === null || known.end === 'no such') known = found.over;
        break;
      default:
        found satisfies never;
    }
  }
  return { isHere: false, decision: over(ending, false, known ?? noSuchTransaction) };
}

/** Passes a request on. Resolves when the request is on its way, before any later one. @param carryOut what is done if the other worker does not answer */
export function passOn(
  { transactions, socketOf, peers }: HeldRequests,
  { name, timeoutMs, asksForEnd, over }: PassOn,
  call: Call,
  carryOut: (decision: Decision) => void,
): Promise<void> | null {
  const { request, response, record, body } = call;
  const unanswered = (why: Exclude<Unanswered, 'late'>) => {
    void transactions.endingOf(name).then((known) => {
      if (response.destroyed) return;
      // A worker notes a COMMIT before it sends it: without a note nothing is committed.
      const mayBeEnding = asksForEnd && known !== 'over';
      if (why !== 'not reached') carryOut(over(known, why === 'lost', overWithWorker(known)));
      else if (!mayBeEnding) carryOut({ ok: false, failure: ownerIsBusy });
      else if (known === 'unknown') carryOut({ ok: false, failure: commitRunning });
      else carryOut(over(known, false, overWithWorker(known)));
    });
  };
  if (response.isForwarded) {
    // It is not passed on again: the worker that had the transaction is gone.
    unanswered('gone');
    return null;
  }
  const { requestId } = record;
  const origin = record.describeOrigin();
  const forwarded = { request, body, requestId, origin, timeoutMs: timeoutMs + answerMarginMs };
  const events = {
    taken: () => {
      record.isReportedElsewhere = true;
    },
    unanswered: (why: Unanswered) => {
      record.isReportedElsewhere = false;
      if (why === 'late') carryOut({ ok: false, failure: deadlineElsewhere });
      else unanswered(why);
    },
  };
  return forwardRequest(socketOf(name.pid), forwarded, response, events, peers);
}

/** The transaction may still be there. */
const ownerIsBusy: Failure = {
  ...refusal(
    'QUEUE_FULL',
    'The worker that has the transaction cannot be reached now. Nothing was executed; it is safe to try again.',
  ),
  retryAfterSeconds: 1,
};

/** The failure of a statement whose transaction is over. */
export function statementOver(wasSent: boolean, over: TransactionOver): Failure {
  return wasSent ? connectionLost : transactionEnded('not_executed', over);
}

/** The failure of a COMMIT or ROLLBACK whose transaction is over, unless the COMMIT is known to be done. */
export function commitOver(
  ending: Exclude<Ending, 'committed'>,
  wasSent: boolean,
  over: TransactionOver,
): Failure {
  if (ending === 'unknown') return connectionLost;
  if (over.end === 'no such') return transactionEnded('unknown', over);
  return transactionEnded(wasSent ? undoneOutcomes[ending] : 'not_executed', over);
}

/** The end of a transaction whose worker is gone. Only the COMMIT's memory has outlived it. */
function overWithWorker(ending: Ending): TransactionOver {
  if (ending === 'committed' || ending === 'unknown') {
    return { end: ending, left: 'unknown', cause: noCause };
  }
  return { end: 'worker gone', left: leftOver[ending], cause: noCause };
}

const leftOver = {
  over: 'nothing',
  partial: 'something',
  unproven: 'unknown',
} as const satisfies Readonly<Partial<Record<Ending, Left>>>;

const undoneOutcomes = {
  over: 'rolled_back',
  partial: 'partial',
  unproven: 'unknown',
} as const satisfies Readonly<Partial<Record<Ending, Outcome>>>;

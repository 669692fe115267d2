// Requests that name a transaction: answered here, passed on to the worker that has it, or told that it is over.
// Must not know what such a request wants beside that.

import type { Ending } from '../../shared/process/commit-endings.ts';
import type { Held, HeldTransactions } from '../execution/transactions/held-transactions.ts';
import { type Failure, type Outcome, refusal } from '../failure/failure.ts';
import { type ForwardEvents, forwardRequest, type Unanswered } from '../http/forward.ts';
import type { Peers } from '../http/peers.ts';
import { type OutgoingReply, sendFailure } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import type { RequestRecord } from '../observe/observation.ts';
import { credentialOf } from '../request/credential.ts';
import {
  commitRunning,
  connectionLost,
  deadlineElsewhere,
  transactionEnded,
} from '../request/run-failure.ts';

/** A request of which the body has been read. */
export type ReadRequest = {
  readonly request: IncomingRequest;
  readonly response: OutgoingReply;
  readonly record: RequestRecord;
  readonly body: Buffer;
  /** Its deadline. */
  readonly timeoutMs: number;
};

/** A worker that stops a statement may take a second to undo it: it answers by then, unless it hangs. */
const answerMarginMs = 2000;

/** What is done with a request, once it is known where its transaction is. */
export type HeldAnswers = {
  readonly held: (held: Held, section: string) => void;
  /** Whether the request is a COMMIT or a ROLLBACK. */
  readonly asksForEnd: boolean;
  /** The transaction is over; `wasSent`: a worker that went meanwhile may have had the request. */
  readonly over: (ending: Ending, wasSent: boolean) => void;
};

/** What endpoints need to find transactions. */
export type HeldRequests = {
  readonly transactions: HeldTransactions;
  /** Where the worker with that process id takes requests that are passed on. */
  readonly socketOf: (pid: number) => string;
  readonly peers: Peers;
};

/**
 * Finds a request's transaction.
 * @param sections those that it may be of
 */
export function findTransaction(
  { transactions, socketOf, peers }: HeldRequests,
  token: string,
  sections: readonly string[],
  read: ReadRequest,
  answers: HeldAnswers,
): void {
  const credential = credentialOf(read.request.headers);
  let ending: Ending = 'over';
  for (const section of sections) {
    const found = transactions.find(token, { section, credential });
    switch (found.kind) {
      case 'held':
        answers.held(found.held, section);
        return;
      case 'elsewhere':
        passOn(socketOf(found.name.pid), peers, read, (why) => {
          void transactions.endingOf(found.name).then((known) => {
            if (read.response.destroyed) return;
            // A COMMIT that was sent is noted before: without that note the transaction is there, and nothing of it is committed.
            const mayBeEnding = answers.asksForEnd && known !== 'over';
            if (why !== 'not reached') answers.over(known, why === 'lost');
            else if (!mayBeEnding) refuseHeld(read, ownerIsBusy);
            else if (known === 'unknown') refuseHeld(read, commitRunning);
            else answers.over(known, false);
          });
        });
        return;
      case 'over':
        if (found.ending !== 'over') ending = found.ending;
        break;
      default:
        found satisfies never;
    }
  }
  answers.over(ending, false);
}

/** What was passed on already is not passed on again: the worker that had the transaction is gone. */
function passOn(
  path: string,
  peers: Peers,
  read: ReadRequest,
  onUnanswered: (why: Exclude<Unanswered, 'late'>) => void,
): void {
  const { request, response, record, body } = read;
  const { requestId } = record;
  if (response.isForwarded) {
    onUnanswered('gone');
    return;
  }
  const timeoutMs = read.timeoutMs + answerMarginMs;
  const origin = record.describeOrigin();
  const events: ForwardEvents = {
    taken: () => {
      record.isToldElsewhere = true;
    },
    unanswered: (why) => {
      record.isToldElsewhere = false;
      if (why === 'late') refuseHeld(read, deadlineElsewhere);
      else onUnanswered(why);
    },
  };
  const forwarded = { request, body, requestId, origin, timeoutMs };
  forwardRequest(path, forwarded, response, events, peers);
}

/** Its transaction may be there. */
const ownerIsBusy: Failure = {
  ...refusal(
    'QUEUE_FULL',
    'The worker that has the transaction cannot be reached now. Nothing was executed; it is safe to try again.',
  ),
  retryAfterSeconds: 1,
};

/** What is told where a transaction is over, of a statement that was to run in it. */
export function statementOver(wasSent: boolean): Failure {
  return wasSent ? connectionLost : transactionEnded('not_executed');
}

/** The same of a COMMIT, but where it is known to be done. */
export function commitOver(ending: Exclude<Ending, 'committed'>, wasSent: boolean): Failure {
  if (ending === 'unknown') return connectionLost;
  return transactionEnded(wasSent ? undoneOutcomes[ending] : 'not_executed');
}

const undoneOutcomes = {
  over: 'rolled_back',
  partial: 'partial',
  unproven: 'unknown',
} as const satisfies Readonly<Partial<Record<Ending, Outcome>>>;

/** Answers a request for which there is nothing to run. */
export function refuseHeld(
  { response, record }: Pick<ReadRequest, 'response' | 'record'>,
  failure: Failure,
): void {
  sendFailure(response, failure, record.requestId);
}

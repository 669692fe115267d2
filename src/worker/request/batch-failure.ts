// A batch that came to nothing, or to a part, in the words of HTTP and of people.
// Pure. Must not know the run, only how it ended. No host, user or SQL in a text.
import { failures } from '../../shared/failure-codes.ts';
import { type Failure, refusal } from '../encode/failure.ts';
import type { BatchFault, Expectation } from '../execution/batch.ts';
import type { Outcome, RunEnd } from '../execution/outcome.ts';

type Failed = Extract<RunEnd, { kind: 'batch failed' }>;

/** What became of all of it, behind what went wrong. */
export const consequences: Readonly<Record<Outcome, string>> = {
  not_executed: 'Nothing was executed.',
  failed: 'Nothing was changed.',
  rolled_back: 'Everything was undone.',
  partial: 'A part stands: look before you repeat it.',
  unknown: 'It may or may not have been applied: look before you repeat it.',
};

/** What is told of a batch that was ended for what a statement of it did. */
export function batchFailure({ fault, statement, outcome }: Failed): Failure {
  const { status, code, message } = describeFault(fault, outcome);
  return {
    status,
    code,
    message: `${message} ${consequences[outcome]}`,
    outcome,
    ...(statement === null ? {} : { place: { statement } }),
  };
}

/** Why something was stopped; the message is one sentence. */
export type StopCause = Pick<Failure, 'status' | 'code' | 'message'>;

/** What is told of a batch that was stopped, and of which it is known what became of it. */
export function stoppedBatch(cause: StopCause, outcome: Outcome): Failure {
  return { ...cause, outcome, message: `${cause.message} ${consequences[outcome]}` };
}

/** What is told of a transaction that its client held, and that is over. */
export function transactionEnded(outcome: Outcome): Failure {
  const reason =
    outcome === 'not_executed'
      ? 'There is no such transaction, or not any more: it was ended, lay idle, was too old, or its connection was lost.'
      : 'The transaction was ended by a statement in it, or its connection was lost.';
  return { ...refusal('TRANSACTION_ENDED', `${reason} ${consequences[outcome]}`), outcome };
}

function describeFault(
  fault: BatchFault,
  outcome: Outcome,
): Pick<Failure, 'status' | 'code' | 'message'> {
  switch (fault.kind) {
    case 'unmet': {
      const { code } = fault.expect;
      const wanted = describeExpectation(fault.expect);
      return {
        status: failures[code].status,
        code,
        message: `${fault.found}, where ${wanted} was expected.`,
      };
    }
    case 'ended':
      return {
        status: failures.TRANSACTION_ENDED.status,
        code: 'TRANSACTION_ENDED',
        message: 'The statement ended the transaction in which it ran.',
      };
    case 'not undoable': {
      const { status, sentStatus } = failures.NOT_UNDOABLE;
      return {
        status: outcome === 'not_executed' ? status : sentStatus,
        code: 'NOT_UNDOABLE',
        message: 'A ROLLBACK is not known to undo all that the statement changes.',
      };
    }
    default:
      return fault satisfies never;
  }
}

function describeExpectation({ of, least, most }: Expectation): string {
  if (least === most) return `${of} ${least}`;
  if (most === Number.POSITIVE_INFINITY) return `${of} of at least ${least}`;
  return least === 0 ? `${of} of at most ${most}` : `${of} from ${least} to ${most}`;
}

// How a run ended without an answer, as a failure: one table of reasons, and the outcome of the statements. Pure.
import {
  type ConnectFailureKind,
  connectFailures,
  type FailureCode,
  failures,
  isConnectFailure,
} from '../../shared/failure-codes.ts';
import type { RunEnd } from '../execution/execution.ts';
import type { ReadOnlyDoubt } from '../execution/read-only-proof.ts';
import { noSuchTransaction, type TransactionOver } from '../execution/transaction-end.ts';
import {
  consequences,
  type Failure,
  failureOnceSent,
  internalFailure,
  type Outcome,
  refusal,
} from '../failure/failure.ts';
import { describeLeft, describeOver } from './transaction-over.ts';

type End<Kind extends RunEnd['kind']> = Extract<RunEnd, { kind: Kind }>;
type Unanswered = Exclude<RunEnd, { kind: 'answered' }>;
type Reason = End<'not executed'>['reason'];

/** Why a run ended: its code and sentence if nothing was sent, and if statements were running. */
type Cause = {
  readonly waiting: readonly [code: FailureCode, sentence: string];
  /** Missing: as if nothing was sent. */
  readonly running?: readonly [code: FailureCode, sentence: string];
  /** The queue is the reason: a repetition makes sense when it will have drained. */
  readonly isQueue?: true;
};

const causes: Readonly<Record<Exclude<Reason, ConnectFailureKind>, Cause>> = {
  'client busy': {
    waiting: ['CLIENT_BUSY', 'Too many requests of this client are waiting.'],
    isQueue: true,
  },
  'queue full': {
    waiting: ['QUEUE_FULL', 'Too many requests are waiting for the database.'],
    isQueue: true,
  },
  'waited too long': {
    waiting: [
      'WAITED_TOO_LONG',
      'No database connection came free within max_wait, or a quarter of the deadline.',
    ],
    isQueue: true,
  },
  deadline: {
    waiting: ['DEADLINE_WAITING', 'The deadline passed before the request could begin.'],
    running: ['DEADLINE_RUNNING', 'The deadline passed while the statement was running.'],
    isQueue: true,
  },
  'no primary': {
    waiting: ['NO_PRIMARY', 'No server takes writes now; /readyz and the log say why.'],
  },
  behind: {
    waiting: [
      'NO_PRIMARY',
      'No server has caught up with what the client has seen (X-Consistency-Token).',
    ],
  },
  'two primaries': {
    waiting: [
      'TWO_PRIMARIES',
      'Several servers accept writes, and the gateway cannot tell which one is the primary. An operator must name it (dbhttpd --primary).',
    ],
  },
  'server left': {
    waiting: [
      'DATABASE_UNREACHABLE',
      'The gateway stopped using the server that it had chosen for the request.',
    ],
    running: ['CONNECTION_LOST', 'The gateway stopped using the server that ran the statement.'],
  },
  stopping: {
    waiting: ['STOPPING', 'The gateway is stopping.'],
    running: ['STOPPING', 'The gateway stopped while the statement was running.'],
  },
  killed: {
    waiting: ['KILLED', 'The request was ended with DELETE /v1/requests or in the console.'],
  },
  'client gone': { waiting: ['CLIENT_GONE', 'The client went away.'] },
  stalled: { waiting: ['STALLED', 'The reader stalled.'] },
  'too large': {
    waiting: ['RESULT_TOO_LARGE', 'The result is too large.'],
    running: [
      'RESULT_TOO_LARGE',
      'The result is larger than max_result_bytes, or than 16 MiB if it is held back.',
    ],
  },
  'too wide': {
    waiting: ['TOO_MANY_COLUMNS', 'The result has too many columns.'],
    running: [
      'TOO_MANY_COLUMNS',
      'The result has more columns than max_columns allows, or 4 MiB of definitions.',
    ],
  },
};

function causeOf(reason: Reason): Cause {
  if (!isConnectFailure(reason)) return causes[reason];
  const { code, meaning } = connectFailures[reason];
  return { waiting: [code, `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.`] };
}

/**
 * @param isRead whether stopping the statements cannot have left anything half done
 * @param retryAfterSeconds when the queue will have drained
 */
export function runFailure(
  end: Unanswered,
  isRead: boolean,
  retryAfterSeconds: () => number,
): Failure {
  switch (end.kind) {
    case 'not executed':
      return notExecuted(end.reason, retryAfterSeconds);
    case 'stopped':
      return ended(end.reason, isRead ? 'failed' : 'unknown');
    case 'cut short':
      return cutShort(end.reason);
    case 'faulted':
      return internalFailure(faultedOutcome(end.isSent, isRead));
    case 'batch failed':
      return batchFailure(end);
    case 'batch stopped':
      return ended(end.reason, end.outcome);
    case 'transaction ended':
      return transactionEnded(end.outcome, end.over ?? noSuchTransaction);
    case 'commit running':
      return commitRunning;
    case 'lost':
      return end.outcome === 'unknown' ? connectionLost : lostRepeatedly;
    case 'key unknown':
      return keyUnknown(end.reason);
    case 'key refused':
      return keyRefused(end);
    case 'key taken':
      throw new Error('a taken key has reached the reply');
    case 'not only reading':
      return notOnlyReading(end);
    case 'token lost':
      return { ...tokenLost, outcome: end.isRead ? 'failed' : 'not_executed' };
    default:
      return end satisfies never;
  }
}

function notExecuted(reason: Reason, retryAfterSeconds: () => number): Failure {
  const { waiting, isQueue = false } = causeOf(reason);
  const [code, sentence] = waiting;
  if (reason === 'killed') return refusal(code, `${sentence} ${consequences.not_executed}`);
  return {
    status: reason === 'client busy' ? failures.CLIENT_BUSY.status : 503,
    code,
    message: `${sentence} Nothing was executed; it is safe to try again.`,
    outcome: 'not_executed',
    retryAfterSeconds: isQueue ? retryAfterSeconds() : 1,
  };
}

/** Statements that may have been sent ended for this reason. */
function ended(reason: Reason, outcome: Outcome): Failure {
  const [code, sentence] = onceSent(reason);
  return failureOnceSent(code, sentence, outcome);
}

function onceSent(reason: Reason): Cause['waiting'] {
  const { waiting, running = waiting } = causeOf(reason);
  return running;
}

/** A READ ONLY run was sent, so it counts as executed. */
function cutShort(reason: Reason): Failure {
  const [code, sentence] = onceSent(reason);
  const message = `The statement was cut short and could not be run again. ${sentence}`;
  return failureOnceSent(code, message, 'failed');
}

/** The possible outcome of the statements of a request that an exception ended. */
export function faultedOutcome(isSent: boolean, isRead: boolean): Outcome {
  if (!isSent) return 'not_executed';
  return isRead ? 'failed' : 'unknown';
}

const lostAfter = 'The connection was lost after the statement was sent.';
const lostWhile = 'The connection was lost again and again while the statements ran.';
/** Also of a request that was passed on to a worker which ended before it answered. */
export const connectionLost = failureOnceSent('CONNECTION_LOST', lostAfter, 'unknown');
const lostRepeatedly = failureOnceSent('CONNECTION_LOST', lostWhile, 'rolled_back');

/** The failure of a request that was passed on to a worker which did not answer long after the deadline. */
export const deadlineElsewhere = ended('deadline', 'unknown');

/** A COMMIT of the transaction has no answer yet. */
export const commitRunning: Failure = {
  status: failures.COMMIT_RUNNING.status,
  code: 'COMMIT_RUNNING',
  message:
    'A COMMIT of the transaction has no answer yet: repeat the request to learn its outcome.',
  outcome: 'unknown',
};

/** A server has lost what the client has seen. */
export const tokenLost = refusal(
  'TOKEN_LOST',
  'A failover has lost what the client has seen before. Send the request without X-Consistency-Token to read what is there now.',
);

/** The transaction that its client held is over. */
export function transactionEnded(outcome: Outcome, over: TransactionOver): Failure {
  const how = describeOver(over);
  if (outcome !== 'not_executed') return failureOnceSent('TRANSACTION_ENDED', how, outcome);
  const message = `${how}${describeLeft(over)} This request executed nothing.`;
  return refusal('TRANSACTION_ENDED', message);
}

/** A batch that was ended because of what a statement of it did. */
function batchFailure({ fault, statement, outcome }: End<'batch failed'>): Failure {
  const place = statement === null ? {} : { place: { statement } };
  switch (fault.kind) {
    case 'unmet': {
      const { of, count } = fault.found;
      const reason = `${of} was ${count}, but ${describeExpectation(fault)}.`;
      return { ...failureOnceSent(codeOfUnmet(fault), reason, outcome), ...place };
    }
    case 'ended': {
      const reason = 'The statement ended the transaction in which it ran.';
      return { ...failureOnceSent('TRANSACTION_ENDED', reason, outcome), ...place };
    }
    case 'not undoable': {
      const reason = 'A ROLLBACK may not undo everything that the statement changes.';
      const failure = failureOnceSent('NOT_UNDOABLE', reason, outcome);
      const isRefused = outcome === 'not_executed';
      return { ...failure, ...(isRefused && { status: failures.NOT_UNDOABLE.status }), ...place };
    }
    default:
      return fault satisfies never;
  }
}

type Unmet = Extract<End<'batch failed'>['fault'], { kind: 'unmet' }>;

function codeOfUnmet({ expect, found }: Unmet): FailureCode {
  return expect.code === 'NOT_ONE_ROW' && found.of === 'row_count' && Number(found.count) === 0
    ? 'NO_ROW'
    : expect.code;
}

function describeExpectation({ expect: { of, min, max, code }, found }: Unmet): string {
  const range = describeRange(min, max);
  // Rows that a write returns count as those that it touches.
  const isSame = of === found.of || code === 'TOO_MANY_ROWS';
  return isSame ? `${range} was expected` : `${of} was expected to be ${range}`;
}

function describeRange(min: number, max: number): string {
  if (min === max) return `${min}`;
  if (max === Number.POSITIVE_INFINITY) return `at least ${min}`;
  return min === 0 ? `at most ${max}` : `${min} to ${max}`;
}

/** A repetition with the same key is safe, whatever the outcome of the first. */
function keyUnknown(reason: End<'key unknown'>['reason']): Failure {
  const [code, sentence] =
    reason === 'lost' ? (['CONNECTION_LOST', lostAfter] as const) : onceSent(reason);
  const message = `${sentence} The outcome of the request with this key is not known yet: repeat it with the same key to learn it.`;
  return { ...failureOnceSent(code, '', 'unknown'), message, outcome: 'unknown', mayRepeat: true };
}

const noTable = 'idempotency_table cannot be used: the log and --check say why.';

function keyRefused({ reason, left }: End<'key refused'>): Failure {
  switch (reason) {
    case 'other request':
      return refusal(
        'IDEMPOTENCY_KEY_REUSED',
        'The Idempotency-Key was used for another request, which was executed. Nothing was executed now.',
      );
    case 'no reply': {
      const message =
        'One of the statements of the request with this key ended its transaction, or its connection was lost while it wrote to tables without transactions. A part of it may remain, and nothing is executed again.';
      return { ...refusal('TRANSACTION_ENDED', message), outcome: 'partial' };
    }
    case 'no table': {
      // The table could be written to when the statements began, and not when they had been run.
      if (left !== undefined) return failureOnceSent('IDEMPOTENCY_TABLE', noTable, left);
      const message = `${noTable} ${consequences.not_executed}`;
      return { ...refusal('IDEMPOTENCY_TABLE', message), retryAfterSeconds: 1 };
    }
    default:
      return reason satisfies never;
  }
}

/** The account's rights decide what the gateway can know, so the message names the one that is missing. */
function notOnlyReading({ doubt, statement }: End<'not only reading'>): Failure {
  const nothing = 'The request only reads: nothing was executed.';
  const message = `${describeDoubt(doubt)} ${nothing}`;
  return {
    ...refusal('READ_ONLY', message),
    namelessMessage: `The statement may do more than read. ${nothing}`,
    ...(statement === null ? {} : { place: { statement } }),
  };
}

function describeDoubt({ kind, name, flavour }: ReadOnlyDoubt): string {
  switch (kind) {
    case 'acts':
      return `The stored routine or view ${name} may do more than read.`;
    case 'hidden routine': {
      const grant =
        flavour === 'mariadb'
          ? 'SELECT ON mysql.proc (before MariaDB 11.3) or SHOW CREATE ROUTINE'
          : 'SHOW_ROUTINE ON *.*';
      return `The account may not see what the stored routine ${name} does. GRANT ${grant} lets it.`;
    }
    case 'hidden view':
      return `The account may not see what the view ${name} calls. GRANT SHOW VIEW lets it.`;
    case 'unclear':
      return 'The gateway could not find out what the statement calls.';
    default:
      return kind satisfies never;
  }
}

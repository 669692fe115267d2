// A run that got no answer, in the words of HTTP and of people: what happened to the data, what to do.
// Pure. Must not know the run, only how it ended. No host, user or SQL in a text.
import { type FailureCode, failures } from '../../shared/failure-codes.ts';
import { type Failure, refusal } from '../encode/failure.ts';
import type { Outcome, RunEnd, StopReason } from '../execution/outcome.ts';
import type { ReadOnlyDoubt } from '../execution/pipeline/read-only-proof.ts';
import {
  batchFailure,
  consequences,
  type StopCause,
  stoppedBatch,
  transactionEnded,
} from './batch-failure.ts';
import { internalFailure } from './internal-fault.ts';

type Unanswered = Exclude<RunEnd, { kind: 'answered' }>;
type NotExecuted = Extract<RunEnd, { kind: 'not executed' }>;
type Stopped = Extract<RunEnd, { kind: 'stopped' }>;
type KeyUnknown = Extract<RunEnd, { kind: 'key unknown' }>;
type CutShort = Extract<RunEnd, { kind: 'cut short' }>;

const consequence = {
  read: 'It was stopped; reading has changed nothing.',
  write: 'It may or may not have been applied: look before you repeat it.',
} as const;

/**
 * @param isRead whether stopping the statements cannot have left anything half done
 * @param retryAfterSeconds asked for where the queue is the reason: when it will have drained
 */
export function runFailure(
  end: Unanswered,
  isRead: boolean,
  retryAfterSeconds: () => number,
): Failure {
  switch (end.kind) {
    case 'not executed':
      return notExecuted(end, retryAfterSeconds);
    case 'stopped':
      return stopped(end, isRead);
    case 'cut short':
      return cutShort(end);
    case 'faulted':
      return internalFailure(faultedOutcome(end.isSent, isRead));
    case 'batch failed':
      return batchFailure(end);
    case 'batch stopped':
      return stoppedBatch(stops[end.reason], end.outcome);
    case 'transaction ended':
      return transactionEnded(end.outcome);
    case 'commit running':
      return commitRunning;
    case 'lost':
      return lost(end);
    case 'key unknown':
      return keyUnknown(end);
    case 'key refused':
      return end.left === undefined ? keyFailures[end.reason] : tableLost(end.left);
    case 'not only reading':
      return notOnlyReading(end);
    case 'token lost':
      return { ...tokenLost, outcome: end.isRead ? 'failed' : 'not_executed' };
    default:
      return end satisfies never;
  }
}

function lost({ outcome }: Extract<RunEnd, { kind: 'lost' }>): Failure {
  const [reason, ending] =
    outcome === 'unknown'
      ? ['after the statement was sent', consequence.write]
      : ['again and again while the statements ran', 'Everything was undone.'];
  const message = `The connection was lost ${reason}. ${ending}`;
  return { status: 502, code: 'CONNECTION_LOST', message, outcome };
}

/** A worker that was passed a request went before it had answered. */
export const connectionLostElsewhere: Failure = lost({ kind: 'lost', outcome: 'unknown' });

/** The account's rights decide what the gateway can know, so the message names the one that is missing. */
function notOnlyReading({
  doubt,
  statement,
}: Extract<RunEnd, { kind: 'not only reading' }>): Failure {
  const message = `${describeDoubt(doubt)} The request only reads: nothing was executed.`;
  return {
    ...refusal('READ_ONLY', message),
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

/** A COMMIT of a held transaction has no answer yet. */
export const commitRunning: Failure = {
  status: failures.COMMIT_RUNNING.status,
  code: 'COMMIT_RUNNING',
  message:
    'A COMMIT of the transaction has no answer yet: ask for it again to learn what became of it.',
  outcome: 'unknown',
};

/** With the same key a repetition is safe, whatever became of the first. */
function keyUnknown({ reason }: KeyUnknown): Failure {
  const cause = keyUnasked(reason);
  const message = `${cause.message} What became of the request with this key is not known yet: repeat it with the same key, and it answers.`;
  return { ...cause, message, outcome: 'unknown', mayRepeat: true };
}

/** Why the key could not be asked. */
function keyUnasked(reason: KeyUnknown['reason']): StopCause {
  switch (reason) {
    case 'lost':
      return {
        status: 502,
        code: 'CONNECTION_LOST',
        message: 'The connection was lost after the statement was sent.',
      };
    case 'queue full':
    case 'waited too long':
    case 'database unreachable':
    case 'no primary':
    case 'two primaries':
    case 'behind':
      return unreached(reason);
    default:
      return stops[reason];
  }
}

const keyFailures: Readonly<Record<Extract<RunEnd, { kind: 'key refused' }>['reason'], Failure>> = {
  'other request': refusal(
    'IDEMPOTENCY_KEY_REUSED',
    'The Idempotency-Key stands for another request, which was executed. Nothing was executed now.',
  ),
  'no reply': {
    ...refusal(
      'TRANSACTION_ENDED',
      'One of the statements of the request with this key ended its transaction, or its connection was lost while it wrote to tables without transactions. A part may stand, and nothing is executed again.',
    ),
    outcome: 'partial',
  },
  'no table': {
    ...refusal(
      'IDEMPOTENCY_TABLE',
      'idempotency_table cannot be used: the log and --check say why. Nothing was executed.',
    ),
    retryAfterSeconds: 1,
  },
};

/** The table could be written to when the statements began, and not when they had been run. */
function tableLost(outcome: Outcome): Failure {
  const { sentStatus: status } = failures.IDEMPOTENCY_TABLE;
  const message = `idempotency_table cannot be used: the log and --check say why. ${consequences[outcome]}`;
  return { status, code: 'IDEMPOTENCY_TABLE', message, outcome };
}

/** What is told of a token whose position is there no more. */
export const tokenLost = refusal(
  'TOKEN_LOST',
  'What the client has seen before is there no more: it was lost when another server became the primary.',
);

/** What may have become of the statements of a request that an exception ended. */
export function faultedOutcome(isSent: boolean, isRead: boolean): Outcome {
  if (!isSent) return 'not_executed';
  return isRead ? 'failed' : 'unknown';
}

const refusals = {
  'queue full': ['QUEUE_FULL', 'Too many requests are waiting for the database.'],
  'waited too long': [
    'WAITED_TOO_LONG',
    'No database connection came free within max_wait, or a quarter of the deadline.',
  ],
  deadline: ['DEADLINE_WAITING', 'No database connection came free before the deadline.'],
  'database unreachable': ['DATABASE_UNREACHABLE', 'The database cannot be reached.'],
  stopping: ['STOPPING', 'The gateway is stopping.'],
  'client gone': ['CLIENT_GONE', 'The client went away.'],
  killed: ['KILLED', 'Somebody ended the request.'],
  stalled: ['STALLED', 'The reader stalled.'],
  'too large': ['RESULT_TOO_LARGE', 'The result is too large.'],
  'too wide': ['TOO_MANY_COLUMNS', 'The result has too many columns.'],
  'no primary': ['NO_PRIMARY', 'None of the servers takes writes now.'],
  'server left': ['DATABASE_UNREACHABLE', 'The server that was to run it is not used any more.'],
  behind: ['NO_PRIMARY', 'None of the servers shows what the client has seen.'],
  'two primaries': [
    'TWO_PRIMARIES',
    'Several servers could be written to, and it cannot be told which should be.',
  ],
} as const satisfies Readonly<
  Record<NotExecuted['reason'], readonly [code: FailureCode, message: string]>
>;

/** Where the queue is the reason, it makes sense to come again when it will have drained. */
const waitReasons: ReadonlySet<NotExecuted['reason']> = new Set([
  'queue full',
  'waited too long',
  'deadline',
]);

function notExecuted({ reason }: NotExecuted, retryAfterSeconds: () => number): Failure {
  const [code, message] = refusals[reason];
  if (reason === 'killed') return { ...refusal(code, `${message} Nothing was executed.`) };
  return {
    status: 503,
    code,
    message: `${message} Nothing was executed; it is safe to try again.`,
    outcome: 'not_executed',
    retryAfterSeconds: waitReasons.has(reason) ? retryAfterSeconds() : 1,
  };
}

/** It had been sent, so that nobody is told it was not executed; and it ran READ ONLY. */
function cutShort({ reason }: CutShort): Failure {
  if (isUnreached(reason)) {
    const failure = unreached(reason);
    const message = `The statement was cut short and could not be run again. ${failure.message} Reading has changed nothing.`;
    return { ...failure, message };
  }
  return stopped({ kind: 'stopped', reason }, true);
}

type Unreached = Exclude<NotExecuted['reason'], StopReason>;

function isUnreached(reason: CutShort['reason']): reason is Unreached {
  return !(reason in stops);
}

function unreached(reason: Unreached): Failure {
  const [code, message] = refusals[reason];
  return { status: failures[code].sentStatus, code, message, outcome: 'failed' };
}

/** Why statements were stopped; what became of them is told behind it. */
const stops: Readonly<Record<StopReason, StopCause>> = {
  deadline: {
    status: 504,
    code: 'DEADLINE_RUNNING',
    message: 'The deadline passed while the statement was running.',
  },
  'too large': {
    status: 422,
    code: 'RESULT_TOO_LARGE',
    message: 'The result is larger than max_result_bytes, or than 16 MiB where it is held back.',
  },
  'too wide': {
    status: 422,
    code: 'TOO_MANY_COLUMNS',
    message: 'The result has more columns than max_columns allows, or 4 MiB of definitions.',
  },
  stopping: {
    status: 502,
    code: 'STOPPING',
    message: 'The gateway stopped while the statement was running.',
  },
  'server left': {
    status: 502,
    code: 'CONNECTION_LOST',
    message: 'The server that ran the statement is not used any more.',
  },
  'client gone': { status: 499, code: 'CLIENT_GONE', message: 'The client went away.' },
  killed: { status: 504, code: 'KILLED', message: 'Somebody ended the request.' },
  stalled: { status: 499, code: 'STALLED', message: 'The reader stalled.' },
};

function stopped({ reason }: Stopped, isRead: boolean): Failure {
  const cause = stops[reason];
  const ending = isRead ? consequence.read : consequence.write;
  const outcome = isRead ? 'failed' : 'unknown';
  return { ...cause, message: `${cause.message} ${ending}`, outcome };
}

/** A worker that was passed a request has not begun to answer when its deadline had long passed. */
export const deadlineElsewhere: Failure = stopped({ kind: 'stopped', reason: 'deadline' }, false);

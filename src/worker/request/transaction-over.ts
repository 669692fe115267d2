// The sentences that say how a transaction has ended, and what remains of it. Pure.
import { errorName } from '../../shared/mysql/error-names.ts';
import type { StopReason } from '../execution/stop-reason.ts';
import type { EndCause, Left, TransactionOver } from '../execution/transaction-end.ts';

/** The one reason for which a transaction is over. */
export function describeOver({ end, cause }: TransactionOver): string {
  if (end === 'no such') {
    return 'The token names no transaction that this client has begun in this section of this gateway.';
  }
  return `The transaction is over: ${describeEnd(end, cause)}.`;
}

function describeEnd(end: Exclude<TransactionOver['end'], 'no such'>, cause: EndCause): string {
  switch (end) {
    case 'committed':
      return 'its client committed it';
    case 'rolled_back':
      return cause.errno === undefined
        ? 'its client rolled it back'
        : `MySQL refused its COMMIT with ${describeError(cause.errno)}`;
    case 'unknown':
      return 'its COMMIT was sent, and MySQL has not answered';
    case 'ended':
      return cause.errno === undefined
        ? 'one of its statements has ended it, such as a CALL that commits'
        : `one of its statements failed with ${describeError(cause.errno)}, which ended it`;
    case 'stopped':
      return cause.stop === undefined ? tooOld(cause) : stops[cause.stop];
    case 'idle':
      return `it was idle for longer than transaction_idle_timeout${describeLimit(cause)}`;
    case 'too_old':
      return tooOld(cause);
    case 'lost':
      return describeLoss(cause);
    case 'moved':
      return 'the gateway no longer uses the database server on which it was open';
    case 'stopping':
      return 'the gateway is stopping';
    case 'worker gone':
      return 'the worker that held it has ended';
    case 'forgotten':
      return 'it ended so long ago that the gateway has forgotten how';
    default:
      return end satisfies never;
  }
}

function describeLoss({ errno, isClosedByServer }: EndCause): string {
  if (errno !== undefined) {
    return `the database server ended its connection with ${describeError(errno)}`;
  }
  return isClosedByServer === true
    ? 'the database server closed its connection'
    : 'its connection to the database was lost';
}

function tooOld(cause: EndCause): string {
  return `it was open for longer than transaction_timeout${describeLimit(cause)}`;
}

/** By why a statement was stopped. */
const stops: Readonly<Record<StopReason, string>> = {
  deadline: 'one of its statements ran to its deadline and was killed',
  'client gone': 'the client left while one of its statements ran',
  stalled: 'the client stopped reading a result of it',
  'too large': 'one of its results was larger than max_result_bytes',
  'too wide': 'one of its results had more columns than max_columns',
  killed: 'one of its statements was ended with DELETE /v1/requests or in the console',
  'server left': 'the gateway no longer uses the database server on which it was open',
  stopping: 'the gateway is stopping',
};

function describeError(errno: number): string {
  return `error ${errno} (${errorName(errno)})`;
}

function describeLimit({ limitMs }: EndCause): string {
  if (limitMs === undefined) return '';
  return limitMs % 1000 === 0 ? ` (${limitMs / 1000} s)` : ` (${limitMs} ms)`;
}

/** The rest of it, as a sentence behind another one; empty: its end says so. */
export function describeLeft({ end, left }: TransactionOver): string {
  return saysWhatRemains.has(end) ? '' : ` ${leftovers[left]}`;
}

const saysWhatRemains: ReadonlySet<TransactionOver['end']> = new Set([
  'committed',
  'unknown',
  'forgotten',
  'no such',
] as const);

const leftovers: Readonly<Record<Left, string>> = {
  nothing: 'Everything in it was undone.',
  something: 'A part of it remains.',
  unknown: 'A part of it may remain.',
};

// The promise about fates: for each way in which a run got no answer the status, the outcome, and what to do.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FailureFacts, failures } from '../../../../src/shared/failure-codes.ts';
import { runFailure } from '../../../../src/worker/request/run-failure.ts';

type Unanswered = Parameters<typeof runFailure>[0];

const table: readonly (readonly [end: Unanswered, status: number, read: string, write: string])[] =
  [
    [{ kind: 'not executed', reason: 'queue full' }, 503, 'not_executed', 'not_executed'],
    [{ kind: 'not executed', reason: 'deadline' }, 503, 'not_executed', 'not_executed'],
    [{ kind: 'not executed', reason: 'server unreachable' }, 503, 'not_executed', 'not_executed'],
    [{ kind: 'not executed', reason: 'stopping' }, 503, 'not_executed', 'not_executed'],
    [{ kind: 'stopped', reason: 'deadline' }, 504, 'failed', 'unknown'],
    [{ kind: 'stopped', reason: 'too large' }, 422, 'failed', 'unknown'],
    [{ kind: 'stopped', reason: 'stopping' }, 502, 'failed', 'unknown'],
    [{ kind: 'cut short', reason: 'queue full' }, 502, 'failed', 'failed'],
    [{ kind: 'cut short', reason: 'server unreachable' }, 502, 'failed', 'failed'],
    [{ kind: 'cut short', reason: 'deadline' }, 504, 'failed', 'failed'],
    [{ kind: 'cut short', reason: 'stopping' }, 502, 'failed', 'failed'],
    [{ kind: 'lost', outcome: 'unknown' }, 502, 'unknown', 'unknown'],
  ];

test('reports what happened, and never more than is known', () => {
  for (const [end, status, read, write] of table) {
    for (const [isRead, outcome] of [
      [true, read],
      [false, write],
    ] as const) {
      const failure = runFailure(end, isRead, () => 7);
      assert.deepEqual([failure.status, failure.outcome], [status, outcome], JSON.stringify(end));
      const promised: FailureFacts = failures[failure.code];
      const isSent = end.kind !== 'not executed';
      assert.equal(status, (isSent ? promised.sentStatus : null) ?? promised.status, failure.code);
      assert.equal(failure.retryAfterSeconds !== undefined, status === 503);
      assert.equal(/safe to try again/.test(failure.message), outcome === 'not_executed');
      assert.equal(/Check the data before you repeat/.test(failure.message), outcome === 'unknown');
    }
  }
});

test('a deadline that passes before anything runs does not say what the request waited for', () => {
  const end: Unanswered = { kind: 'not executed', reason: 'deadline' };
  const { code, message } = runFailure(end, true, () => 7);
  assert.equal(code, 'DEADLINE_WAITING');
  assert.match(
    message,
    /^The deadline passed before the request could begin\. Nothing was executed/,
  );
});

test('an expectation that was not met is reported with both numbers', () => {
  for (const [expect, found, message] of [
    [
      { min: 0, max: 3, code: 'TOO_MANY_ROWS' },
      'affected_rows',
      'affected_rows was 5, but at most 3',
    ],
    [{ min: 0, max: 3, code: 'TOO_MANY_ROWS' }, 'row_count', 'row_count was 5, but at most 3'],
    [{ min: 1, max: 1 }, 'affected_rows', 'affected_rows was 5, but 1'],
    [
      { min: 6, max: Number.POSITIVE_INFINITY },
      'affected_rows',
      'affected_rows was 5, but at least 6',
    ],
  ] as const) {
    const { message: shown } = runFailure(unmet(expect, found), false, () => 7);
    assert.equal(shown, `${message} was expected. Everything was undone.`);
  }
  const { message } = runFailure(unmet({ min: 1, max: 1 }, 'row_count'), false, () => 7);
  assert.match(message, /^row_count was 5, but affected_rows was expected to be 1\./);
});

function unmet(
  expect: { min: number; max: number; code?: 'TOO_MANY_ROWS' },
  of: 'affected_rows' | 'row_count',
): Unanswered {
  return {
    kind: 'batch failed',
    fault: {
      kind: 'unmet',
      expect: { of: 'affected_rows', code: 'EXPECTATION_FAILED', ...expect },
      found: { of, count: 5n },
    },
    statement: 0,
    outcome: 'rolled_back',
  };
}

test('if the outcome of a request with a key is unknown, the same key may be sent again', () => {
  const reasons = ['deadline', 'stopping', 'queue full', 'server unreachable', 'lost'] as const;
  const reported = reasons.map((reason) => {
    const failure = runFailure({ kind: 'key unknown', reason }, false, () => 7);
    assert.deepEqual([failure.outcome, failure.mayRepeat], ['unknown', true]);
    assert.match(failure.message, /^[^.]+\. The outcome of .* repeat it with the same key/);
    return [failure.status, failure.code];
  });
  assert.deepEqual(reported, [
    [504, 'DEADLINE_RUNNING'],
    [502, 'STOPPING'],
    [502, 'QUEUE_FULL'],
    [502, 'DATABASE_UNREACHABLE'],
    [502, 'CONNECTION_LOST'],
  ]);
});

test('the failure of a stopped batch has its outcome, once', () => {
  const end = { kind: 'batch stopped', reason: 'too large', outcome: 'rolled_back' } as const;
  const { status, code, message } = runFailure(end, false, () => 7);
  assert.deepEqual([status, code], [422, 'RESULT_TOO_LARGE']);
  assert.match(message, /16 MiB if it is held back\. Everything was undone\.$/);
});

test('gives each way a separate code', () => {
  // A run that was cut short has the code of the reason that kept it from running again.
  const ways = table.filter(([end]) => end.kind !== 'cut short');
  const codes = ways.map(([end]) => runFailure(end, true, () => 7).code);
  assert.ok(new Set(codes).size >= codes.length - 1, codes.join());
});

test('sends a client back when the queue will have drained, where the queue is the reason', () => {
  const wait = (reason: 'queue full' | 'deadline' | 'stopping') =>
    runFailure({ kind: 'not executed', reason }, true, () => 7).retryAfterSeconds;
  assert.deepEqual([wait('queue full'), wait('deadline'), wait('stopping')], [7, 7, 1]);
});

test('a write that was stopped for any reason, or ended by an exception, is unknown; a read has failed', () => {
  const reasons = [
    'deadline',
    'client gone',
    'stalled',
    'too large',
    'killed',
    'stopping',
  ] as const;
  for (const reason of reasons) {
    const outcomeOf = (isRead: boolean) =>
      runFailure({ kind: 'stopped', reason }, isRead, () => 7).outcome;
    assert.deepEqual([outcomeOf(true), outcomeOf(false)], ['failed', 'unknown'], reason);
  }
  const faulted = (isSent: boolean, isRead: boolean) =>
    runFailure({ kind: 'faulted', isSent, cause: new Error('a mistake') }, isRead, () => 7).outcome;
  assert.deepEqual([faulted(true, true), faulted(true, false)], ['failed', 'unknown']);
  assert.deepEqual([faulted(false, true), faulted(false, false)], ['not_executed', 'not_executed']);
});

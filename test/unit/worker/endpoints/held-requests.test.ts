// The failure of a request whose transaction is over, or whose worker is gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commitOver, statementOver } from '../../../../src/worker/endpoints/held-requests.ts';
import {
  noSuchTransaction,
  type TransactionOver,
} from '../../../../src/worker/execution/transaction-end.ts';

const over: TransactionOver = { end: 'worker gone', left: 'nothing', cause: {} };

test('a COMMIT that was sent and has no answer is unknown', () => {
  for (const wasSent of [true, false]) {
    const { status, outcome } = commitOver('unknown', wasSent, over);
    assert.deepEqual([status, outcome], [502, 'unknown'], `${wasSent}`);
  }
});

test('a COMMIT that was not sent is reported as rolled back, or not executed if nothing was passed on', () => {
  assert.deepEqual(
    [true, false].map((wasSent) => [
      commitOver('over', wasSent, over).status,
      commitOver('over', wasSent, over).outcome,
    ]),
    [
      [409, 'rolled_back'],
      [409, 'not_executed'],
    ],
  );
});

test('a COMMIT for a token that names no known transaction is unknown: another gateway may have sent one', () => {
  for (const wasSent of [true, false]) {
    const { status, outcome } = commitOver('over', wasSent, noSuchTransaction);
    assert.deepEqual([status, outcome], [409, 'unknown'], `${wasSent}`);
  }
});

test('a statement that another worker may have run before it went is unknown', () => {
  assert.equal(statementOver(true, over).outcome, 'unknown');
  assert.equal(statementOver(false, over).outcome, 'not_executed');
});

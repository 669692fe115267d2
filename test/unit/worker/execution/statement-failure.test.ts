// What is told of a request of which MySQL refused a statement, and what is not known then.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeFailure } from '../../../../src/worker/execution/statement-failure.ts';

const error = (errno: number) => ({ errno, sqlState: 'HY000', message: 'refused' });
const applied = [{ isResultSet: false, inTransaction: true }];
const text = 'insert into t values (1); insert into t values (2)';

test('a ROLLBACK behind a refused statement undoes those before it', () => {
  const failure = describeFailure(text, applied, error(1062), true);
  assert.deepEqual([failure.statement, failure.isUnknown, failure.rolledBack], [1, false, true]);
  assert.equal(describeFailure(text, applied, error(1062), false).rolledBack, false);
});

test('where the server cannot tell what became of a statement, nothing is told rolled back', () => {
  const failure = describeFailure(text, applied, error(1180), true);
  assert.deepEqual([failure.isUnknown, failure.rolledBack], [true, false]);
});

test('a statement that may have applied a part of itself is told so, but for one that was not understood', () => {
  const call = (errno: number) => describeFailure('call p()', [], error(errno), true);
  assert.deepEqual([call(1062).mayBePartial, call(1062).rolledBack], [true, false]);
  assert.deepEqual([call(1064).mayBePartial, call(1064).rolledBack], [false, true]);
});

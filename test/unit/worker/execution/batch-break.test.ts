// The effect of an error on the transaction around it.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  outcomeWithoutTransaction,
  undoesTransaction,
} from '../../../../src/worker/execution/batch-break.ts';

const undoes = (errno: number, wasCommitting: boolean) =>
  undoesTransaction({ errno, sqlState: 'HY000', message: 'refused' }, wasCommitting);

test('a COMMIT that a server refuses since it takes no writes, or leaves its group, is undone', () => {
  for (const errno of [1290, 3100]) assert.equal(undoes(errno, true), true, `${errno}`);
});

test('the same errors as answers to a statement leave its transaction open', () => {
  for (const errno of [1290, 3100]) assert.equal(undoes(errno, false), false, `${errno}`);
});

test('a deadlock and a conflict undo it wherever they come', () => {
  for (const errno of [1213, 1205, 1020, 3101]) {
    assert.deepEqual([undoes(errno, true), undoes(errno, false)], [true, true], `${errno}`);
  }
});

test('an error after which the result of COMMIT is unknown does not undo it', () => {
  assert.equal(undoes(1180, true), false);
});

test('without a transaction, the first statement that is refused has applied nothing, unless it is a CALL; later ones leave a part', () => {
  const refused = (step: number, isCall: boolean, errno = 1062) =>
    outcomeWithoutTransaction({
      kind: 'refused',
      error: { errno, sqlState: '23000', message: 'refused' },
      step,
      isCall,
      isOfKey: false,
    });
  assert.equal(refused(0, false), 'failed');
  assert.equal(refused(0, true), 'partial');
  assert.equal(refused(1, false), 'partial');
  assert.equal(refused(0, false, 1180), 'unknown');
  const stopped = { kind: 'stopped', reason: 'deadline', error: null, isCall: false } as const;
  assert.equal(outcomeWithoutTransaction(stopped), 'unknown');
});

// The report about a request of which MySQL refused a statement, and what remains unknown then.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import {
  mayBePartial,
  statementFailure,
} from '../../../../src/worker/execution/statement-failure.ts';

const error = (errno: number) => ({ errno, sqlState: 'HY000', message: 'refused' });
const applied = [{ isResultSet: false, inTransaction: true, warnings: 0 }];
const text = (sql: string, isReadOnly = false) => ({
  statements: analyse(sql).statements,
  isReadOnly,
  isRead: false,
});
const inserts = text('insert into t values (1); insert into t values (2)');

test('a ROLLBACK behind a refused statement undoes those before it', () => {
  const { place, outcome, isAlone } = statementFailure(inserts, applied, error(1062), true);
  assert.deepEqual([place, outcome, isAlone], [{ statement: 1 }, 'rolled_back', false]);
  assert.equal(statementFailure(inserts, applied, error(1062), false).outcome, 'partial');
});

test('if the server cannot report the end of a statement, nothing is reported as rolled back', () => {
  assert.equal(statementFailure(inserts, applied, error(1180), true).outcome, 'partial');
  assert.equal(statementFailure(inserts, [], error(1180), true).outcome, 'unknown');
  const read = text('select 1', true);
  assert.equal(statementFailure(read, [], error(1180), false).outcome, 'failed');
});

test('a refused CALL may have applied a part of itself, except one that was not understood', () => {
  const call = text('call p()');
  const outcomeOf = (errno: number) => statementFailure(call, [], error(errno), true).outcome;
  assert.deepEqual([outcomeOf(1062), outcomeOf(1064)], ['partial', 'rolled_back']);
  assert.deepEqual(
    [mayBePartial(call, error(1062)), mayBePartial(call, error(1064))],
    [true, false],
  );
});

test('a refused statement alone is counted as an error, whatever its outcome', () => {
  const one = statementFailure(text('insert into t values (1)'), [], error(1062), false);
  assert.deepEqual([one.outcome, one.isAlone, one.place], ['failed', true, undefined]);
});

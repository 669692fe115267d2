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

test('a refused CALL or DROP may have applied a part of itself, except a DROP that was not understood', () => {
  const outcomesOf = (sql: string) =>
    [1062, 1064].map((errno) => {
      const { outcome } = statementFailure(text(sql), [], error(errno), true);
      return [outcome, mayBePartial(text(sql), error(errno))];
    });
  const partial = ['partial', true];
  // The syntax error may be that of a statement in the procedure.
  assert.deepEqual(outcomesOf('call p()'), [partial, partial]);
  assert.deepEqual(outcomesOf('drop table a, b'), [partial, ['rolled_back', false]]);
});

test('a refused statement alone is counted as an error, whatever its outcome', () => {
  const one = statementFailure(text('insert into t values (1)'), [], error(1062), false);
  assert.deepEqual([one.outcome, one.isAlone, one.place], ['failed', true, undefined]);
});

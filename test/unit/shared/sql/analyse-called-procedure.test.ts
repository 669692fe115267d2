// The procedure that a CALL names, if nothing else can change something.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';

const findCalledProcedure = (sql: string) => analyse(sql).classification.procedure;

test('a CALL names its procedure, with and without a schema, arguments and quotes', () => {
  for (const [sql, schema, name] of [
    ['call p', null, 'p'],
    ['CALL p()', null, 'p'],
    ["/* x */ call d.p(1, 'a)', @b, -2 + 3)", 'd', 'p'],
    ['call `d`.`p``q`( concat(1, 2) ) ', 'd', 'p`q'],
  ] as const) {
    assert.deepEqual(findCalledProcedure(sql), { schema, name }, sql);
  }
});

test('an argument that may change something, or an uncertain name, gives no procedure', () => {
  for (const sql of [
    'select p()',
    'call p(f(1))',
    'call p((select max(n) from t))',
    'call p(1) or more',
    'call "p"()',
    'call d.p.q()',
    'call p(/*! f() */ 1)',
    '',
  ]) {
    assert.equal(findCalledProcedure(sql), null, sql);
  }
});

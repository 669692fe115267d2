// Which procedure a CALL names, where nothing but that can change something.
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

test('what else may change something, or cannot be told, is none', () => {
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

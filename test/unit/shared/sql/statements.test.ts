// Texts are cut into statements as the server does it.
import assert from 'node:assert/strict';
import test from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { createResultMap } from '../../../../src/shared/sql/statements.ts';

const scanStatements = (sql: string) => analyse(sql).statements;

const pieces = (sql: string) => scanStatements(sql).map(({ start, end }) => sql.slice(start, end));
const verbs = (sql: string) => scanStatements(sql).map(({ verb }) => verb);

test('cuts at semicolons outside of literals, names and comments', () => {
  assert.deepEqual(pieces("select ';' ; insert `;` -- ;\n;/* ; */ delete"), [
    "select ';' ",
    'insert `;` -- ;\n',
    '/* ; */ delete',
  ]);
  assert.deepEqual(verbs('select 1; (SELECT 2); with a as (select 1) select 2'), [
    'SELECT',
    'SELECT',
    'WITH',
  ]);
});

test('counts as the server counts: a comment is a statement, trailing semicolons and spaces are none', () => {
  assert.deepEqual(verbs('select 1; '), ['SELECT']);
  assert.deepEqual(verbs('select 1;;; ;\n'), ['SELECT']);
  assert.deepEqual(verbs('select 1; -- c'), ['SELECT', '']);
  assert.deepEqual(verbs('select 1; -- ;'), ['SELECT', '']);
  assert.deepEqual(verbs('select 1;\n#c\n'), ['SELECT', '']);
  assert.deepEqual(verbs('select 1;; select 2'), ['SELECT', '', 'SELECT']);
  assert.deepEqual(verbs('; select 1'), ['', 'SELECT']);
  assert.deepEqual(verbs('/* a */ select 1'), ['SELECT']);
  for (const sql of ['', ' ', ';', ' ; ']) assert.deepEqual(verbs(sql), []);
});

test('keeps bodies and compound statements whole', () => {
  const body =
    'begin if a then select 1; else select 2; end if; case x when 1 then select case when b then 1 end; end case; while a do set b=1; end while; end';
  for (const head of [
    'create procedure p()',
    'create or replace function f() returns int',
    "create definer='a'@'b' trigger t before insert on x for each row",
    'create event if not exists e on schedule every 1 day do',
  ]) {
    assert.deepEqual(verbs(`${head} ${body}; select 3`), ['CREATE', 'SELECT'], head);
  }
  assert.deepEqual(verbs('begin not atomic select 1; begin select 2; end; end; select 3'), [
    'BEGIN',
    'SELECT',
  ]);
  assert.deepEqual(verbs('if a then select 1; end if; select 3'), ['IF', 'SELECT']);
  assert.deepEqual(verbs('l: loop select 1; leave l; end loop; select 3').length, 2);
  assert.deepEqual(verbs('for i in 1..2 do select 1; end for; select 3'), ['FOR', 'SELECT']);
});

test('a false block hides no statement', () => {
  assert.equal(scanStatements('begin; delete from t; commit').length, 3);
  assert.equal(scanStatements('begin work; delete from t').length, 2);
  assert.equal(scanStatements('select begin; delete from t').length, 2);
  assert.equal(scanStatements('create table t (`begin` int, begin int); delete from t').length, 2);
  assert.equal(scanStatements('create procedure p() select 1; delete from t').length, 2);
  assert.equal(scanStatements('create procedure p() begin select 1; delete from t').length, 2);
  assert.equal(scanStatements('select case when a then 1 end; delete from t').length, 2);
  assert.equal(scanStatements('select 1 as a; a: delete from t').length, 2);
});

test('finds the statement of each result', () => {
  const map = createResultMap(
    scanStatements('call p(); select 1; begin not atomic select 1; end; do 1'),
  );
  const results = [true, true, false, true, true, false, false, false];
  assert.deepEqual(
    results.map((isResultSet) => map.next(isResultSet)),
    [0, 0, 0, 1, 2, 2, 3, 3],
  );
});

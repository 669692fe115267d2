// The promise of ROLLBACK_ON_ERROR_SUCCESS: true only if nothing of the request remains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { type Effect, rollbackUndoesAll } from '../../../../src/shared/sql/rollback.ts';

function effectOf(sql: string): Effect {
  const [statement] = analyse(sql).statements;
  return statement?.effect ?? 'nothing';
}

/** After a statement with a + a transaction is open; one with a ! had a warning. */
type Step = string;

/** Whether all is undone. */
function isUndone(steps: readonly Step[], failed: string): boolean {
  const before = steps.map((step) => ({
    effect: effectOf(step.replace(/^[+!]*/, '')),
    inTransaction: step.startsWith('+'),
    warnings: step.includes('!') ? 1 : 0,
  }));
  return rollbackUndoesAll(before, effectOf(failed));
}

const insert = 'insert into t values (1)';
const create = 'create table d (a int)';
const begun = ['+begin', `+${insert}`];

const table: readonly (readonly [steps: readonly Step[], failed: string, undone: boolean])[] = [
  [[], insert, true],
  [[], create, true],
  [['select * from t'], insert, true],
  [begun, insert, true],
  [['+start transaction', '+update t set a = 1', '+select 1'], 'select * from nope', true],
  [['set @a = 1', 'use d', 'do sleep(0)'], 'delete from t', true],
  // Committed at once: autocommit.
  [[insert], insert, false],
  [[insert, ...begun], insert, false],
  [['with c as (select 1) delete from t'], insert, false],
  // Committed on the way.
  [[...begun, 'commit'], insert, false],
  [[...begun, create], insert, false],
  // A new transaction, and autocommit, commit the one before.
  [[...begun, ...begun], insert, false],
  [[...begun, '+start transaction'], insert, false],
  [[...begun, 'set autocommit = 1'], insert, false],
  [[...begun, '+set @a = 1'], insert, true],
  // The request's own ROLLBACK leaves nothing. After one to a savepoint some changes may remain.
  [[...begun, 'rollback'], create, true],
  [[...begun, 'rollback', insert], insert, false],
  [[...begun, '+rollback to savepoint s'], insert, true],
  [[...begun, '+rollback to savepoint s'], create, false],
  // Tables without transactions: ROLLBACK warns.
  [[...begun, '!rollback'], insert, false],
  [[...begun, '+!rollback to savepoint s'], insert, false],
  [[...begun, 'rollback', 'rollback'], insert, true],
  // DDL commits before it fails; for other statements this is unknown.
  [begun, create, false],
  [begun, 'call p()', false],
  [begun, "load data infile 'x' into table t", false],
  // A function may write, also in a statement that does nothing else.
  [['select f(1)'], insert, false],
  [['do f(1)'], insert, false],
  [['set @a = f(1)'], insert, false],
  [['select nextval(s)'], insert, false],
  [['explain select * from (select f(1)) d'], insert, false],
  [['+begin', '+select f(1)'], insert, true],
  [['+begin', '+select f(1)', 'commit'], insert, false],
  [['with c as (select 1) select * from c'], insert, true],
  [['with c as (select f(1)) select * from c'], insert, false],
  // No ROLLBACK undoes these.
  [["+select 1 into outfile '/x'"], insert, false],
  [['select 1 into @a'], insert, true],
  [['set global x = 1'], insert, false],
  [['set @a = 1, global x = 1'], insert, false],
  [['set @@global.x = 1'], insert, false],
  [['set persist x = 1'], insert, false],
  [["set password = 'x'"], insert, false],
  [['set default role r'], insert, false],
  [['set statement max_statement_time = 1 for insert into t values (1)'], insert, false],
  [['+begin', '+set statement max_statement_time = 1 for select 1'], insert, true],
  [['+begin', '+set statement max_statement_time = 1 for create table d (a int)'], insert, false],
  // Numbers that are skipped are no change, as those of AUTO_INCREMENT.
  [['+begin', '+select nextval(s)'], insert, true],
  [['+begin', '+select setval(s, 5)'], insert, false],
  [['+begin', '+insert into t values (setval(s, 5))'], insert, false],
  [['set session x = 1, names utf8mb4, @@local.y = 2'], insert, true],
  // The same first words, but other statements.
  [['begin not atomic insert into t values (1); end'], insert, false],
  [['start replica'], insert, false],
  // A block of Oracle's mode.
  [['begin insert into t values (1)'], insert, false],
  [['begin work'], insert, true],
  [['/*!99999 select */ insert into t values (1)'], insert, false],
  [['select 1 /*! , f(1) */'], insert, false],
  // A part of these may remain, although they fail.
  [[], 'call p()', false],
  [[], 'drop table a, b', false],
  [[], 'if 1 then delete from t; end if', false],
  [[], 'begin not atomic delete from t; end', false],
  [[], 'set statement max_statement_time = 1 for call p()', false],
  [[], 'create or replace table t select * from nope', false],
  [[], 'create or replace temporary table t select * from nope', false],
  [[], 'create or replace database d', false],
  [[], 'create /*! or replace */ table d (a int)', false],
  [[], 'create or replace user a identified via nothing', false],
  [[], 'create user a /*! , b */', false],
  [[], `grant select (${Array.from({ length: 30 }, (_, n) => `c${n}`)}) on t to a, b`, false],
  [[], "set global x = 1, password for a = 'y'", false],
  [[], 'select setval(s, 5) union all select (select 1 union select 2)', false],
  [[], 'set statement x = 1 for begin not atomic delete from t', false],
  [[], 'declare x int', false],
  [[], 'create user a, b', false],
  [[], "alter user a identified by 'x', b identified by 'y'", false],
  [[], 'rename user a to b, c to d', false],
  [[], 'grant select on *.* to a, b', false],
  [[], 'revoke select on *.* from a, b', false],
  // Nothing of these.
  [[], 'create or replace view v as select * from nope', true],
  [[], 'create or replace algorithm = merge view v as select * from nope', true],
  [[], 'set global x = 1', true],
  [[], 'create user a', true],
  [[], 'alter table t add a int, add b int', true],
  [[], 'rename table a to b, c to d', true],
  [[], 'grant select, insert on t to a', true],
];

test('is true only if nothing remains', () => {
  for (const [steps, failed, undone] of table) {
    assert.equal(isUndone(steps, failed), undone, JSON.stringify([steps, failed]));
  }
});

test('if readings of a text cut it at different places, each statement may be several', () => {
  const effects = (sql: string) => analyse(sql).statements.map(({ effect }) => effect);
  assert.deepEqual(effects("select '\\'; delete from t; -- '"), ['program']);
  assert.deepEqual(effects("select 'it\\'s'; select 1"), ['nothing', 'nothing']);
  assert.deepEqual(effects('select $a$; delete from t; $a$'), ['program', 'program', 'program']);
});

test('a syntax error changes nothing, whatever its first word is', () => {
  const before = [{ effect: effectOf(insert), inTransaction: true, warnings: 0 }];
  assert.equal(rollbackUndoesAll(before, 'nothing'), true);
  assert.equal(rollbackUndoesAll([], 'nothing'), true);
});

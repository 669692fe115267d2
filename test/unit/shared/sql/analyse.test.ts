// Classification of what a text does to data: reads and writes, one statement and several.
import assert from 'node:assert/strict';
import test from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { assertProportional, repeating } from '../../../support/processor-time.ts';
import { anyCharacter, fc } from '../../../support/property.ts';

const classify = (...[sql, builtIns]: Parameters<typeof analyse>) =>
  analyse(sql, builtIns).classification;

test('distinguishes reads, writes, and statements that may be either', () => {
  const kinds: [string, string][] = [
    ['select 1', 'read'],
    ['(select 1) union select 2', 'read'],
    ['select get_lock("a", 1)', 'read'],
    ['select * from t for update', 'read'],
    ['with c as (select 1) select * from c', 'read'],
    ['show tables', 'read'],
    ['explain update t set a=1', 'read'],
    ['select 1; select 2', 'read'],
    ['select last_insert_id()', 'read'],
    ['insert into t values (1)', 'write'],
    ['with c as (select 1) delete from t', 'write'],
    ['with c as (select replace(a,b,c) from t) update t set a=1', 'write'],
    ['explain analyze delete from t', 'write'],
    ['analyze update t set a=1', 'write'],
    ['select f(1)', 'other'],
    ['select nextval(s)', 'other'],
    ['select 1 into outfile "x"', 'other'],
    ['select 1 /*! into outfile "x" */', 'other'],
    ['select 1; delete from t', 'other'],
    ['create table t (a int)', 'other'],
    ['commit', 'other'],
    ['call p()', 'other'],
    ['analyze table t', 'other'],
    ['-- only a comment', 'other'],
    ['', 'other'],
  ];
  for (const [sql, kind] of kinds) assert.equal(classify(sql).kind, kind, sql);
});

test('allows only reads in a read-only request', () => {
  const allowed = [
    'select 1',
    'select 1;',
    'with c as (select 1) select * from c',
    'show tables',
    'explain select 1',
    'explain delete from t',
    'describe t',
    'select f(1)',
    'select @x',
    'select @@version',
    '(select 1)',
    'analyze select 1',
    'explain analyze select 1',
    'values (1)',
    'table t',
    'select "into outfile"',
  ];
  for (const sql of allowed) assert.equal(classify(sql).readOnlyAllowed, true, sql);
  const refused = [
    'insert into t values (1)',
    'select 1; select 2',
    'select 1; -- c',
    'select 1 into outfile "x"',
    "select 1 into/**/dumpfile 'x'",
    'select 1 into @x',
    'select * from t for update',
    'select * from t for share',
    'select * from t lock in share mode',
    'select 1 /*! */',
    'select 1 /*!50000 for update */',
    "select get_lock('a',1)",
    'select nextval(s)',
    'select next value for s',
    'explain analyze delete from t',
    'analyze delete from t',
    'analyze table t',
    'with c as (select 1) update t set a=1',
    'with c as (select 1) delete from t',
    'set @x=1',
    'call p()',
    'create table t (a int)',
    'do 1',
    'handler t open',
    '',
    'select `\0`',
    'select $$ $$',
    "select '\\'', 1 into outfile 'x' -- '",
  ];
  for (const sql of refused) assert.equal(classify(sql).readOnlyAllowed, false, sql);
});

test('decides whether a text holds one statement, however a backslash is read', () => {
  for (const sql of ['select 1', 'select 1;', ' select 1 ; ; \n', "select ';'", "select 'it\\'s'"])
    assert.equal(classify(sql).single, true, sql);
  for (const sql of [
    'select 1; select 2',
    'select 1; -- c',
    ';select 1',
    "select '\\'; delete from t -- '",
    "select '\\\\'; delete from t",
    'select "\\"; delete from t -- "',
    "select 1 /*!99999 ; ' */",
  ]) {
    assert.equal(classify(sql).single, false, sql);
  }
});

test('takes linear time and never throws', () => {
  for (const unit of [
    ';',
    ' ;',
    'a;',
    "'\\''",
    '(',
    'f(',
    '@',
    '/*!',
    'select ',
    '"x"',
    'a.',
    ')',
    'ſ',
  ]) {
    assertProportional(repeating(unit), 1 << 17, classify);
  }
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (sql) => {
      assert.equal(typeof classify(sql).kind, 'string');
    }),
  );
});

test('takes time in proportion to the length, whatever the text', () => {
  const withTables = (count: number) =>
    Array.from({ length: count }, (_, n) => `c${n} as (select 1)`).join();
  const texts: ((length: number) => string)[] = [
    (length) => `select 1${repeating(';')(length)}x`,
    (length) => `select 1${repeating(' ;')(length)}x`,
    repeating('select 1 from t;'),
    repeating('/*!x*/;'),
    (length) => `with ${withTables(length / 32)} select 1 from t${repeating(',d')(length / 2)}`,
  ];
  for (const make of texts) assertProportional(make, 100_000, classify);
});

test('a function with a schema is not a built-in, whatever its name', () => {
  for (const sql of ["select d.upper('x')", 'select d . concat (a) from t', 'select `d`.abs(1)']) {
    const { kind, leavesSessionClean } = classify(sql);
    assert.deepEqual([kind, leavesSessionClean], ['other', false], sql);
  }
  assert.equal(classify("select upper('x')").kind, 'read');
});

test("reads the content of MariaDB's own comments as SQL, as in MySQL's", () => {
  for (const sql of [
    "select 1 /*M! into outfile '/tmp/x' */",
    'select 1 /*m!100000 , f() */',
    'select 1 /*! , f() */',
  ]) {
    const { kind, readOnlyAllowed, leavesSessionClean } = classify(sql);
    assert.deepEqual([kind, readOnlyAllowed, leavesSessionClean], ['other', false, false], sql);
  }
  assert.equal(classify('select 1 /*M 100000 */ /* M! */').kind, 'read');
});

/** The only tables whose rows a statement changes; null: they are not known. */
const namesOf = (sql: string) =>
  classify(sql).confinedTo?.map(({ schema, name }) =>
    schema === null ? name : `${schema}.${name}`,
  ) ?? null;

test('a word of the grammar before a parenthesis is no call, where it is one', () => {
  for (const sql of [
    "insert into t select a from json_table('[]', '$[*]' columns (a int(11) path '$')) as j",
    `update t join json_table(@a, "$[*]" columns(a real path "$", nested path '$.b' columns(b bit(1) path '$'))) j
      set t.a = j.a`,
    'update t, lateral (select 1 as b) as d set a = b',
    'insert into t values row(1), row(2)',
    'insert into t value (1)',
    'delete from t where a = any (select 1) and b > some (select 2) and row(a, b) = row(1, 2)',
    "update t set a = json_value(b, '$' returning datetime(6)), c = json_value(b, '$' returning dec(4))",
    'with c as (select 1 as a) update t join c on t.a = c.a set t.b = 1',
    'with c (a) as (select 1) delete t from t join c on t.a = c.a',
    'insert into t with c as (select 1) select * from c',
  ]) {
    assert.deepEqual(namesOf(sql), ['t'], sql);
  }
  for (const sql of [
    'insert into t values (json_table(1))',
    'insert into t values (lateral (1))',
    "insert into t values ('a', columns(1))",
    "update t set a = 'b' where columns (1)",
    'insert into t values (d.any(1))',
    'insert into t values (`row`(1))',
    "select a from json_table(f(1), '$' columns (a int path '$')) as j",
    "select a from json_table('[]', '$' columns (a int path '$')) as j where f(1)",
    'select * from lateral (select f(1)) as d',
    'select * from f(1)',
  ]) {
    assert.equal(namesOf(sql), null, sql);
  }
});

test('reports the only tables whose rows a statement changes; in doubt they are unknown', () => {
  assert.deepEqual(namesOf("insert into d.t values (1, 'a\\\\b', now(), sleep(1))"), ['d.t']);
  assert.deepEqual(namesOf('update t join u on t.id = u.id set t.n = @a'), ['t', 'u']);
  assert.deepEqual(namesOf('select upper(a) from t for update'), ['t']);
  for (const sql of ['set @a = 1', 'do sleep(1)', 'savepoint s', 'rollback to savepoint s']) {
    assert.deepEqual(namesOf(sql), [], sql);
  }
  for (const sql of [
    'insert into t values (f())',
    'select f(1)',
    'set @a = f()',
    'call p()',
    'create table t (a int)',
    'insert into t values (nextval(s))',
    "select 1 into outfile 'x'",
    '/*! delete from t */',
    'delete from t; delete from u',
    "insert into t values ('\\'), ('); delete from u -- ')",
  ]) {
    assert.equal(namesOf(sql), null, sql);
  }
});

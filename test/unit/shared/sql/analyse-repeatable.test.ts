// Classification of reads whose answer depends on the tables alone: other clients may get the same reply.
import assert from 'node:assert/strict';
import test from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';

const classify = (...[sql, builtIns]: Parameters<typeof analyse>) =>
  analyse(sql, builtIns).classification;

test('reads of tables with functions of their values are repeatable', () => {
  for (const sql of [
    'select 1',
    'SELECT * FROM City WHERE ID = 42',
    "select name, upper(v), coalesce(v, 'now()') from t where v like '%@x%' limit 3",
    '(select 1) union (select 2)',
    'with c as (select a from t) select count(*) from c group by a',
    "select date_format(d, '%Y'), adddate(d, interval 1 day) from t",
    'select user, rand, uuid, now from t',
    'select t.default, `now`, "rand" from t',
    'values (1), (2)',
    'table t',
    'select /* now() */ a from t -- rand()',
    'select 1;',
  ]) {
    assert.equal(classify(sql).repeatable, true, sql);
  }
});

test('reads that depend on the clock, chance, the session, a file or an unknown function are not, in any spelling', () => {
  for (const expression of [
    'now()',
    'NOW ( 6 )',
    'Now/* c */()',
    'curdate()',
    'current_timestamp',
    'CURRENT_TIMESTAMP(3)',
    'current_date',
    'localtime',
    'sysdate()',
    'SYSDATE',
    'utc_timestamp',
    'unix_timestamp()',
    'rand()',
    'rand(3)',
    'uuid()',
    'uuid_short()',
    'user()',
    'current_user',
    'session_user()',
    'system_user()',
    'current_role()',
    'connection_id()',
    'sleep(1)',
    'benchmark(9, 1)',
    "load_file('/etc/hosts')",
    "is_free_lock('a')",
    "is_used_lock('a')",
    "get_lock('a', 1)",
    'last_insert_id()',
    'row_count()',
    'found_rows()',
    'default(t.a)',
    '@x',
    '@x := 1',
    '@@session.sql_mode',
    'nextval(s)',
    'next value for s',
    'own(1)',
    'db.own(1)',
    '`now`()',
  ]) {
    for (const sql of [
      `select ${expression} from t`,
      `select 1 from t where a > (${expression})`,
      `with c as (select ${expression}) select * from c`,
    ]) {
      assert.equal(classify(sql).repeatable, false, sql);
    }
  }
});

test('locks, files, hidden statements, several statements, and all that is not a plain read are not', () => {
  for (const sql of [
    'select * from t for update',
    'select * from t for share',
    'select * from t lock in share mode',
    '(select * from t for update) union select 1',
    "select 1 into outfile '/tmp/x'",
    'select 1 into @x',
    'select /*! now(), */ 1',
    'select 1 /*M! for update */',
    'select sql_calc_found_rows * from t',
    'select * from information_schema.tables',
    'select * from performance_schema.threads',
    'select * from sys.processlist',
    'select 1; select 1',
    'show tables',
    'show processlist',
    'explain select 1',
    'analyze select 1',
    'describe t',
    'insert into t values (1)',
    'update t set a = 1',
    'call p()',
    'do 1',
    'set statement max_statement_time = 1 for select 1',
    'execute s',
    'begin',
    '',
    "select 'a\\', now(), '",
  ]) {
    assert.equal(classify(sql).repeatable, false, sql);
  }
});

// Classification of what a statement leaves in its session, or reads from it, in any spelling; plain statements cost no reset.
import assert from 'node:assert/strict';
import test from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';

const classify = (...[sql, builtIns]: Parameters<typeof analyse>) =>
  analyse(sql, builtIns).classification;

const leavingExpressions = [
  '@x:=1',
  '@`x`:=1',
  "@'x' := 1",
  "GET_LOCK('a',1)",
  "release_lock('a')",
  'Release_All_Locks ( )',
  'LAST_INSERT_ID(7)',
  'last_insert_id ( 7 )',
  'last_insert_id(/* c */ 7)',
  'unknown_function(1)',
  'unknown_function ( 1)',
  'world.f(1)',
  'world . f (1)',
  '`f`(1)',
  '`GET_LOCK`("a",1)',
  '"f"(1)',
  'world.`f` (1)',
  '1f(1)',
  'ſleep(1)',
  'sleep\u00a0(1)',
  'größe(1)',
  'NEXTVAL(s)',
  'setval(s, 5)',
  'LASTVAL(s)',
  'next value for s',
  'PREVIOUS VALUE FOR s',
  's.nextval',
  'IF(1, GET_LOCK("a", 1), 0)',
  '(SELECT f(1))',
];

/** Statements that leave something in the session. */
const leavingStatements = [
  'USE world',
  'SET NAMES latin1',
  'set names gbk',
  'SET @x = 1',
  "SET sql_mode=''",
  "SET time_zone='+00:00'",
  'SET autocommit=0',
  'BEGIN',
  'START TRANSACTION',
  'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE',
  'SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE',
  'CREATE TEMPORARY TABLE t (a int)',
  'LOCK TABLES t READ',
  "PREPARE s FROM 'select 1'",
  'EXECUTE s',
  'HANDLER t OPEN',
  'SET ROLE r',
  'CALL p()',
  "DO GET_LOCK('a',1)",
  'SELECT 1 INTO @x',
  'select a from t into @x, @y',
  "SELECT 1 INTO OUTFILE '/tmp/x'",
  'begin not atomic select 1; end',
  'SET STATEMENT max_statement_time=1 FOR SELECT 1',
  'FLUSH TABLES WITH READ LOCK',
  'XA START "a"',
  'SAVEPOINT a',
  'LOAD DATA INFILE "x" INTO TABLE t',
];

const readingExpressions = [
  'LAST_INSERT_ID()',
  'ROW_COUNT()',
  'found_rows ( )',
  '@@identity',
  '@@last_insert_id',
  '@@session.x',
  '@x',
  'f(1)',
  'LASTVAL(s)',
];
const readingStatements = [
  'SHOW WARNINGS',
  'show errors limit 1',
  'SHOW COUNT(*) WARNINGS',
  'SHOW SESSION STATUS',
  'SHOW VARIABLES',
  'SHOW PROFILES',
  'GET DIAGNOSTICS @n = NUMBER',
  'SELECT * FROM information_schema.session_status',
  'SELECT * FROM `INFORMATION_SCHEMA`.x',
  'select * from performance_schema.events_statements_current',
  'SELECT PREVIOUS VALUE FOR s',
  'CALL p()',
  'EXECUTE s',
];

/** The same expression in every place that should not hide it. */
const places = [
  (e: string) => `SELECT ${e}`,
  (e: string) => `select ${e} from t`,
  (e: string) => `/* c */ SELECT 1, ${e} -- c`,
  (e: string) => `SELECT\n\t${e}`,
  (e: string) => `# c\nSELECT/**/${e}`,
  (e: string) => `(SELECT ${e})`,
  (e: string) => `SELECT * FROM t WHERE (a) = ${e}`,
  (e: string) => `SELECT * FROM (SELECT ${e}) d`,
  (e: string) => `WITH c AS (SELECT ${e}) SELECT * FROM c`,
  (e: string) => `WITH RECURSIVE c(a) AS (SELECT 1 UNION SELECT ${e}) SELECT * FROM c`,
  (e: string) => `WITH c AS (SELECT 1) SELECT ${e} FROM c`,
  (e: string) => `SELECT 1 UNION (SELECT ${e})`,
  (e: string) => `SELECT CASE WHEN (1) THEN ${e} ELSE 2 END`,
  (e: string) => `SELECT (1) AND ${e}`,
  (e: string) => `SELECT 1 FROM t ORDER BY ${e}`,
  (e: string) => `INSERT INTO t VALUES (${e})`,
  (e: string) => `INSERT INTO t (a) SELECT ${e}`,
  (e: string) => `INSERT t SET a = ${e}`,
  (e: string) => `REPLACE INTO world.t (a) VALUES (1), (${e})`,
  (e: string) => `INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = ${e}`,
  (e: string) => `UPDATE t SET a = ${e}`,
  (e: string) => `DELETE FROM t WHERE a IN (${e})`,
  (e: string) => `SELECT 1; SELECT ${e}`,
  (e: string) => `SELECT ${e}; SELECT 1`,
  (e: string) => `SELECT 'it\\'s', ${e}`,
  (e: string) => `SELECT "\\"", ${e}`,
  (e: string) => `SELECT '\\'', '/*', ${e} -- ' */`,
  (e: string) => `EXPLAIN SELECT ${e}`,
];

test('finds every expression that leaves something, in any place', () => {
  for (const expression of leavingExpressions) {
    for (const place of places) {
      const sql = place(expression);
      assert.equal(classify(sql).leavesSessionClean, false, sql);
    }
  }
});

test('sees every statement that leaves something, alone, after another and after comments', () => {
  for (const sql of [...leavingStatements, 'SELECT SQL_CALC_FOUND_ROWS * FROM t']) {
    for (const text of dressed(sql)) assert.equal(classify(text).leavesSessionClean, false, text);
  }
  for (const sql of leavingStatements) {
    for (const text of dressed(sql)) {
      assert.notEqual(classify(text).kind, 'read', text);
      assert.equal(classify(text).readOnlyAllowed, false, text);
    }
  }
});

/** A statement as it would hide: behind comments and other statements, or in an executable comment. */
function dressed(sql: string): string[] {
  return [
    sql,
    ` ${sql};`,
    sql.toLowerCase(),
    `/* c */${sql}`,
    `-- c\n${sql}`,
    `SELECT 1; ${sql}`,
    `${sql}; SELECT 1`,
    `/*!50000 ${sql} */`,
    `/*M! ${sql} */`,
    `select 1 /*! ; ${sql} */`,
  ];
}

test('finds everything that reads what an earlier statement left', () => {
  for (const expression of readingExpressions) {
    for (const place of places) {
      const sql = place(expression);
      assert.equal(classify(sql).readsEarlierSession, true, sql);
    }
  }
  for (const sql of readingStatements) {
    for (const text of [
      sql,
      `/* c */ ${sql.toLowerCase()};`,
      `SELECT 1; ${sql}`,
      `/*! ${sql} */`,
    ]) {
      assert.equal(classify(text).readsEarlierSession, true, text);
    }
  }
});

test('plain statements are clean, so that they cost no reset', () => {
  const plain = [
    'select * from City where ID = 42',
    'SELECT ID, Name FROM City WHERE ID=?;',
    'SELECT COUNT(*), MAX(a), CONCAT(a, "b"), IFNULL ( a , b ) FROM world.City GROUP BY (a) HAVING (COUNT(*)) > 1',
    "select * from t where a in ('x','y') and (b = 1 or c between (1) and (2)) limit 5 offset 1",
    'select a.*, (select max(x) from u where u.a=a.a) m from t a left join u using (id) join v on (v.a=a.a)',
    'with c as (select 1) select * from c',
    'with recursive c(n) as (select 1 union all select n+1 from c where n < 5) select * from c',
    'select row_number() over (partition by a order by b) from t',
    'select row_number() over w from t window w as (order by a)',
    "select match (a) against ('x' in boolean mode) from t",
    'select cast(a as char(10)), cast(b as decimal(10,2)), convert(c, datetime) from t',
    'select * from t use index (a) where b = 1',
    'select * from t partition (p0)',
    'select * from (select 1) as d(a)',
    'select * from (select 1) d (a)',
    'select a from t for update',
    'select sleep(1)',
    'insert into t values (1, now())',
    'insert into t (a, b) values (1, 2), (3, 4)',
    'insert into `t` (`a`) values (1)',
    'insert into world.`t`(a) select a from u',
    'insert ignore into t(a) values (1)',
    'insert t (a) values (1)',
    'insert low_priority ignore t (a) values (1)',
    'insert into t set a=1',
    'insert into t (a) values (1) on duplicate key update a=values(a)+1',
    'replace into t (a) values (replace("a","b","c"))',
    'update t set a=a+1, b=concat(b,"x") where id in (1,2)',
    'delete from t where id=1',
    "insert into t values ('it\\'s', \"a\\\"b\", 'x')",
    'show tables',
    'show create table t',
    'explain select * from t',
    'describe t',
    'desc t',
    '(select 1) union (select 2)',
    'values (1,2)',
    'table t',
    'select /*+ MAX_EXECUTION_TIME(1000) */ 1',
    'select "f(", `f(`, \'@x\' -- GET_LOCK(1)',
  ];
  for (const sql of plain) {
    const found = classify(sql);
    assert.equal(found.leavesSessionClean, true, sql);
    assert.equal(found.readsEarlierSession, false, sql);
    assert.equal(found.single, true, sql);
  }
});

test('reading what an earlier statement left is clean in itself', () => {
  for (const sql of [
    'select last_insert_id()',
    'select row_count()',
    'select @@version',
    'show warnings',
    'select * from information_schema.tables',
  ]) {
    const { leavesSessionClean, readsEarlierSession } = classify(sql);
    assert.deepEqual(
      { leavesSessionClean, readsEarlierSession },
      { leavesSessionClean: true, readsEarlierSession: true },
      sql,
    );
  }
});

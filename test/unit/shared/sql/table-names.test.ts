// The tables that an analysis finds: it never misses one, and reports its doubts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';

const classify = (...[sql, builtIns]: Parameters<typeof analyse>) =>
  analyse(sql, builtIns).classification;

/** The names in the order of the text; null if they are not known. */
function namesOf(sql: string): string | null {
  const { tables } = classify(sql);
  if (tables === null) return null;
  return tables.map(({ schema, name }) => (schema === null ? name : `${schema}.${name}`)).join(' ');
}

const known: readonly (readonly [sql: string, names: string])[] = [
  ['select 1', ''],
  ['select 1 from dual', ''],
  ['select * from t', 't'],
  ['select * from `a``b`', 'a`b'],
  ['select * from db.t', 'db.t'],
  ['select * from `db` . `t` as x', 'db.t'],
  ['select * from db/* c */.t', 'db.t'],
  ['select * from t as a, u b, v', 't u v'],
  ['select * from t a left join u b on a.x = b.y and b.z in (1, 2), v', 't u v'],
  ['select * from t natural join u cross join v straight_join w', 't u v w'],
  ['select straight_join a from t', 't'],
  ['select * from (t, u) join (v join (w) on 1) on 1', 't u v w'],
  ['select * from t use index (a, b) ignore index for join (c), u', 't u'],
  ['select * from t force index for order by (a), u', 't u'],
  ['select * from t partition (p0, p1) as x, u', 't u'],
  ['select * from t join u using (a, b), v', 't u v'],
  ['select * from (select a, b from t) as d (x, y), u', 't u'],
  ['select * from t, lateral (select * from u) d', 't u'],
  [
    "select * from t, json_table(t.j, '$[*]' columns (a int path '$.a', b int path '$.b')) as j, u",
    't u',
  ],
  [
    'select (select max(x) from u), a from t where b in (select c from v where d = (select 1 from w))',
    'u t v w',
  ],
  ['select extract(year from d), trim(both x from y), substring(a from 2 for 3) from t', 't'],
  ['select a from t where b = extract(day from (select c from u)) order by 1, 2 limit 1, 2', 't u'],
  ['select a from t union select b, c from u union all (select d from v) order by 1', 't u v'],
  ['(select a from t) union (table u)', 't u'],
  ['table t order by a limit 1', 't'],
  ['values row(1, 2), row(3, 4)', ''],
  ['select a from t group by a, b with rollup having c > 1, d', 't'],
  ['select sum(a) over (partition by b, c order by d) from t', 't'],
  ['select match (a, b) against ("x" with query expansion) from t', 't'],
  ['with c as (select * from t) select * from c, u', 't u'],
  ['with c (a, b) as (select 1, 2), d as (select * from c) select * from d, c', ''],
  ['with c as (select * from c) select * from c', 'c'],
  ['with recursive c (n) as (select 1 union all select n + 1 from c) select * from c join t', 't'],
  [
    'with a as (with recursive b as (select 1) select * from b), c as (select * from c) select * from c',
    'c',
  ],
  ['select * from (with c as (select 1) select * from c) d, c', 'c'],
  ['with c as (select 1) select * from db.c', 'db.c'],
  ['with c as (select 1) select * from C', 'C'],
  ['insert into t values (1, replace(2, 3, 4))', 't'],
  ['insert ignore t (a, b) select c, insert(d, 1, 2, 3) from u, v', 't u v'],
  ['insert into db.t set a = 1, b = (select max(c) from u)', 'db.t u'],
  ['insert into t (a) values (1), (2) on duplicate key update a = values(a), b = 2', 't'],
  ['insert into t select a from u on duplicate key update a = 1, b = 2', 't u'],
  ['replace low_priority into t partition (p) table u', 't u'],
  ["update t set a = replace(b, 'x', 'y'), c = 1 where d = 2 order by e, f", 't'],
  ['update low_priority ignore t, u join v on 1 set t.a = 1, u.b = 2', 't u v'],
  ['delete from t where a in (select b from u)', 't u'],
  ['delete quick from t', 't'],
  ['delete a, b from t a, u b where 1', 't u'],
  ['delete from a, b using t a join u b on 1', 'a b t u'],
  ['delete from a using (t a, u)', 'a t u'],
  ['delete a from a join b using (id) where 1', 'a b'],
  ['delete from a using a join b using (id), c', 'a a b c'],
  ['delete from a using a straight_join b join c using (id)', 'a a b c'],
  // MySQL refuses a target with the name of a CTE.
  ['with c as (select * from u) update t join c on t.a = c.a set t.b = 1', 'u t'],
  ['with c as (select * from u) delete t from t join c on t.a = c.a', 'u t'],
  ['with c as (select 1) delete from db.c', 'db.c'],
  ['with C as (select 1) delete from c', 'c'],
  ['insert into c with c as (select * from t) select * from c', 'c t'],
  ['insert into t (a) with c as (select * from u) select * from c', 't u'],
  ['update c set a = (with c as (select 1 as b) select b from c), d = (select 1 from c)', 'c c'],
  ["insert into t select a from json_table('[]', '$' columns (a int path '$')) j", 't'],
  ['show full columns from t', ''],
  ['show tables where 1 in (select a from t)', 't'],
  ['explain select * from t', 't'],
  ['select 1; select * from t; select * from u', 't u'],
  ['select fröm from größe', 'größe'],
];

test('all tables are found, wherever they are, and nothing else', () => {
  for (const [sql, names] of known) assert.equal(namesOf(sql), names, sql);
});

const unsure: readonly string[] = [
  'select * from "t"',
  'select * from t, "u"',
  'select * from 1t',
  'select * from .t',
  'select * from { oj t left join u on 1 }',
  'select * from f(1)',
  'select * from t for system_time from 1 to 2',
  'select * from /*! t */',
  'select * from t where a = 1 /*! or b = 2 */',
  'select * from',
  'select * from (t',
  'select * from t)',
  "select * from t where a = 'it\\'s'",
  'explain for schema other select * from t',
  'explain analyze for database other select * from t',
  "select id as [x'], f(1) as [y'] from t",
  'use other; select * from t',
];

test('in doubt the names are unknown', () => {
  for (const sql of unsure) assert.equal(namesOf(sql), null, sql);
});

test('reports which statements may change tables', () => {
  for (const sql of [
    'create view v as select 1',
    'alter table t add a int',
    'drop table t',
    'rename table t to u',
    'call p()',
    'select 1; drop view v',
    'begin not atomic drop view v; end',
    'set statement max_statement_time=1 for create table t (a int)',
    "execute immediate 'drop view v'",
    'execute s',
    'grant select on t to u',
    '/*! drop view v */',
    "select '\\'; drop view v -- '",
    'backup stage end',
  ]) {
    assert.equal(classify(sql).mayChangeObjects, true, sql);
  }
  for (const sql of [
    'select 1',
    'select f(1) from t',
    'insert into t values (1)',
    'begin; update t set a = 1; commit',
    'set names utf8mb4',
    'truncate t',
    "select 'drop' from t",
    'select /*! sql_no_cache */ a from t',
    'show create table t',
  ]) {
    assert.equal(classify(sql).mayChangeObjects, sql.startsWith('show create'), sql);
  }
});

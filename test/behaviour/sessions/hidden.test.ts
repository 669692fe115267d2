// Effects on the session that hide in expressions, stored functions and procedures: the next request sees none.
// Views and triggers are the documented limit of `auto`.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, documentOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { cases } from '../../support/property.ts';

let database: Database;
let gateway: Gateway;
let other: Awaited<ReturnType<Database['connect']>>;

// One connection for all requests: thousands of them would cost more than the requests.
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const ask = (sql: string) => gateway.dbPost({ SQL: sql }, { agent });

before(async () => {
  database = await startDatabase();
  for (const sql of [
    'create table t (id int primary key auto_increment, v varchar(50))',
    'create function f_variable() returns int begin set @x = 1; return 1; end',
    'create function f_into() returns int begin select 1 into @x; return 1; end',
    `create function f_lock() returns int begin do get_lock('hidden', 0); return 1; end`,
    'create function f_id() returns int return last_insert_id(7)',
    'create function f_mode() returns int begin set sql_mode = "ANSI_QUOTES"; return 1; end',
    'create procedure p_variable() set @x = 1',
    `create procedure p_lock() do get_lock('hidden', 0)`,
    'create procedure p_id() do last_insert_id(7)',
    'create procedure p_mode() set sql_mode = "ANSI_QUOTES"',
    'create procedure p_names() set names latin1',
    `create procedure p_begin() begin start transaction; insert into t (v) values ('ghost'); end`,
    `create procedure p_autocommit() begin set autocommit = 0; insert into t (v) values ('ghost'); end`,
    'create procedure p_isolation() set session transaction isolation level serializable',
    'create procedure p_next() set transaction read only',
    'create procedure p_temporary() create temporary table tmp (a int)',
    `create procedure p_prepare() prepare s from 'select 1'`,
    'create procedure p_nested() begin call p_lock(); call p_variable(); call p_id(); end',
    'create procedure p_result() begin select f_lock(), f_id(); set @x = 1; end',
    `create procedure p_fails() begin call p_nested(); signal sqlstate '45000'; end`,
  ]) {
    await database.query(sql);
  }
  other = await database.connect();
  gateway = await startGateway({ database, settings: { workers: 1, pool: 1 } });
});
after(async () => {
  agent.destroy();
  await gateway?.stop();
  other?.destroy();
  await database.stop();
});
beforeEach(async () => {
  await database.query("delete from t; insert into t values (1, 'one')");
});

/** Everything that a session may have kept. Each is read in a separate request. */
const expectations: readonly (readonly [sql: string, expected: unknown])[] = [
  ["select hex('é')", 'C3A9'],
  ["select count(*) from t where v = 'ghost'", 0],
  ['select "a"', 'a'],
  ["update t set v = 'one' where id = 1", undefined],
  ['select @x', null],
  ['select last_insert_id()', 0],
  ['select @@autocommit', 1],
  ['select count(*) from tmp', 1146],
  ['execute s', 1243],
];

async function assertNothingLeft(after_: string, asked = expectations): Promise<void> {
  for (const [sql, expected] of asked) {
    const reply = await ask(sql);
    const errno = documentOf(reply).MYSQL_ERRNO;
    assert.equal(errno ?? cellOf(reply), expected, `after ${after_}: ${sql}`);
  }
  const [rows] = await other.query(
    `select is_free_lock('hidden') as free, (select count(*) from t where v = 'ghost') as ghosts`,
  );
  const [row] = rows as { free: unknown; ghosts: unknown }[];
  assert.equal(`${row?.free} ${row?.ghosts}`, '1 0', `after ${after_}: lock, rows`);
}

/** A function cannot commit, make a table or prepare. */
const ofFunctions = expectations.filter(([sql]) => /@x|last_insert|"a"/.test(sql));

const effects = [
  '@x := 1',
  "get_lock('hidden', 0)",
  'last_insert_id(7)',
  'f_variable()',
  'f_into()',
  'f_lock()',
  'f_id()',
  'f_mode()',
  '`f_lock`()',
  'f_lock ()',
  'f_id/* */()',
  "get_lock/*! ('hidden', 0) */",
];

const places: Readonly<Record<string, (effect: string) => string>> = {
  'the select list': (effect) => `select ${effect}`,
  'a subquery': (effect) => `select (select ${effect})`,
  'a derived table': (effect) => `select * from (select ${effect} as c) as d`,
  'a common table expression': (effect) => `with c as (select ${effect} as n) select * from c`,
  'a recursive one': (effect) =>
    `with recursive c (n) as (select 1 union all select n + 1 from c where n < 2 and ${effect} is null)
     select * from c`,
  'a condition': (effect) => `select 1 from t where (${effect}) is not null`,
  EXISTS: (effect) => `select exists (select ${effect})`,
  'a union': (effect) => `select 1 union select ${effect}`,
  'an order': (effect) => `select id from t order by (${effect})`,
  'a CASE': (effect) => `select case when (${effect}) then 1 else 2 end`,
  'a harmless function': (effect) => `select coalesce(abs(${effect}), 'get_lock')`,
  'INSERT … SELECT': (effect) => `insert into t (v) select ${effect}`,
  'INSERT … VALUES': (effect) => `insert into t (v) values ((${effect}))`,
  'ON DUPLICATE KEY': (effect) =>
    `insert into t values (1, 'x') on duplicate key update v = (${effect})`,
  UPDATE: (effect) => `update t set v = (${effect})`,
  DELETE: (effect) => `delete from t where (${effect}) = 99`,
  DO: (effect) => `do ${effect}`,
  SET: (effect) => `set @y = (${effect})`,
  'an executable comment': (effect) => `select 1 /*! , (${effect}) */`,
  'a second statement': (effect) => `select 'a;'; select ${effect}`,
};

/** With DBHTTPD_TEST_EFFORT=2 or more, each function is tested in each place. */
const isThorough = cases(1) > 1;

for (const [index, effect] of effects.entries()) {
  test(`nothing is left of ${effect} in any place`, async () => {
    for (const [at, [place, put]] of Object.entries(places).entries()) {
      // No text shows what a stored function does, so in each place a few of them represent all.
      if (effect.startsWith('f_') && !isThorough && at % 3 !== index % 3) continue;
      await ask(put(effect));
      await assertNothingLeft(`${place}: ${put(effect)}`, ofFunctions);
    }
  });
}

test('nothing is left of a procedure, whatever it does and however it ends', async () => {
  const procedures = await database.query(
    'select routine_name as name from information_schema.routines where routine_schema = database() and routine_type = ?',
    ['PROCEDURE'],
  );
  assert.ok(procedures.length >= 13);
  for (const { name } of procedures) {
    for (const call of [`call ${name}()`, `/*! call ${name}() */`, `select 1; call ${name}()`]) {
      await ask(call);
      await assertNothingLeft(call);
    }
    await ask('call p_next()');
  }
});

// The changes of a request to its session are gone before another request uses the connection. There is only one connection here.
import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { after, before, beforeEach, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, documentOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { cases as effortOf } from '../../support/property.ts';

let database: Database;
let gateway: Gateway;

// One connection for all requests: thousands of them would cost more than the requests.
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const ask = (sql: string) => gateway.dbPost({ SQL: sql }, { agent });

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key auto_increment, v varchar(50) unique);
    create table two (n int); insert into two values (1), (2);
    create role if not exists ${database.name}_role;
    grant ${database.name}_role to current_user`);
  gateway = await startGateway({ database, settings: { workers: 1, pool: 1 } });
});
after(async () => {
  agent.destroy();
  await gateway?.stop();
  await database.query(`drop role ${database.name}_role`);
  await database.stop();
});
beforeEach(() => database.query('delete from t'));

/** The next request. Its answer must be the same as before the dirty request. */
const probes = {
  database: 'select database()',
  charset: "select hex('é'), 'é'",
  variable: 'select @x',
  quotes: 'select "a"',
  mode: 'select @@sql_mode',
  zone: 'select timediff(now(), utc_timestamp())',
  autocommit: 'select @@autocommit',
  isolation: "show variables like '%isolation'",
  limit: 'select n from two order by n',
  write: "insert into t values (5, 'probe'); delete from t where id = 5",
  plainWrite: "replace into t values (1, 'probe')",
  temporary: 'select * from tmp',
  prepared: 'execute s',
  handler: 'handler two read first',
  role: 'select current_role()',
  insertId: 'select last_insert_id()',
  identity: 'select @@identity',
  rowCount: 'select row_count()',
  foundRows: 'select found_rows()',
  warnings: 'show warnings',
  diagnostics: 'get diagnostics @n = row_count; select @n',
  rows: 'select count(*) from t',
  profiles: 'show profiles',
} as const;

type Case = readonly [what: string, sql: string, ...probes: (keyof typeof probes)[]];

const cases: readonly Case[] = [
  ['USE', 'use information_schema', 'database', 'limit'],
  ['SET NAMES latin1', 'set names latin1', 'charset'],
  ['SET NAMES gbk', 'set names gbk', 'charset'],
  ['SET CHARACTER SET', 'set character set latin1', 'charset'],
  ['the charset of results alone', "set character_set_results = 'latin1'", 'charset'],
  ['SET @x', 'set @x = 1', 'variable'],
  ['SELECT @x:=1', 'select @x:=1', 'variable'],
  ['SELECT INTO @x', 'select 1 into @x', 'variable'],
  ['sql_mode', "set sql_mode = 'ANSI_QUOTES'", 'quotes', 'mode'],
  ['time_zone', "set time_zone = '+05:00'", 'zone'],
  ['sql_select_limit', 'set sql_select_limit = 1', 'limit'],
  ['autocommit = 0', 'set autocommit = 0', 'autocommit', 'write'],
  ['autocommit = 0 and INSERT', "set autocommit = 0; insert into t (v) values ('a')", 'rows'],
  ['BEGIN and INSERT', "begin; insert into t (v) values ('a')", 'rows', 'autocommit'],
  ['BEGIN READ ONLY', 'start transaction read only', 'plainWrite'],
  ['SET TRANSACTION for the next one', 'set transaction read only', 'plainWrite'],
  ['the next isolation', 'set transaction isolation level serializable', 'isolation'],
  ['isolation', 'set session transaction isolation level serializable', 'isolation'],
  ['a read-only session', 'set session transaction read only', 'plainWrite'],
  ['XA START', "xa start 'x'", 'write'],
  ['CREATE TEMPORARY TABLE', 'create temporary table tmp (a int)', 'temporary'],
  ['a temporary table in front of a real one', 'create temporary table two (n int)', 'limit'],
  ['LOCK TABLES READ', 'lock tables two read', 'plainWrite', 'limit'],
  ['LOCK TABLES WRITE', 'lock tables two write', 'rows', 'plainWrite'],
  ['FLUSH TABLES WITH READ LOCK', 'flush tables t with read lock', 'plainWrite'],
  ['GET_LOCK', "select get_lock('l', 0)", 'limit'],
  ['DO GET_LOCK', "do get_lock('l', 0)", 'limit'],
  ['PREPARE', "prepare s from 'select 1'", 'prepared'],
  ['HANDLER OPEN', 'handler two open', 'handler'],
  ['LAST_INSERT_ID(7)', 'select last_insert_id(7)', 'insertId', 'identity'],
  ['SET insert_id', 'set last_insert_id = 7', 'insertId', 'identity'],
  ['SQL_CALC_FOUND_ROWS', 'select sql_calc_found_rows n from two limit 1', 'foundRows'],
  ['SET ROLE', 'set role ROLE', 'role'],
  ['SET profiling', "set profiling = 1; select 'a secret'", 'profiles'],
  [
    'a plain INSERT',
    "insert into t values (77, 'b')",
    'insertId',
    'identity',
    'rowCount',
    'diagnostics',
    'warnings',
  ],
  ['a plain INSERT with an id', "insert into t (v) values ('b')", 'insertId', 'identity'],
  ['a plain UPDATE', 'update two set n = n + 0', 'rowCount', 'foundRows', 'diagnostics'],
  ['a plain SELECT', 'select n from two', 'foundRows', 'rowCount', 'diagnostics'],
  ['INSERT with warnings', "insert ignore into t values (78, repeat('x', 60))", 'warnings'],
  ['a SELECT with warnings', "select cast('a' as signed)", 'warnings', 'diagnostics'],
];

const disguises: Readonly<Record<string, (sql: string) => string>> = {
  'as it is': (sql) => sql,
  'in other letters': (sql) => sql.replace(/^\w+/, (word) => word.toUpperCase()),
  'behind comments': (sql) => `/* select 1 */ -- select 2;\n# select 3\n ${sql} /* end */ ;`,
  'in an executable comment': (sql) =>
    sql
      .split('; ')
      .map((one) => `/*!50000 ${one} */`)
      .join('; '),
  'as a second statement': (sql) => `select 1; ${sql}`,
  'before another statement': (sql) => `${sql}; select 1`,
  'before an error': (sql) => `${sql}; select * from missing_table`,
  'after an unfinished read': (sql) => `select n from two; ${sql};; syntax error`,
};

async function answersOf(names: readonly (keyof typeof probes)[]): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const name of names) answers.push(documentOf(await ask(probes[name])));
  return answers;
}

/** With DBHTTPD_TEST_EFFORT=2 or more, each probe follows each disguise. */
const isThorough = effortOf(1) > 1;

for (const [what, sql, ...names] of cases) {
  test(`the next request sees nothing of ${what}`, async () => {
    const dirty = sql.replace('ROLE', `${database.name}_role`);
    const clean = await answersOf(names);
    for (const [at, [disguise, wrap]] of Object.entries(disguises).entries()) {
      for (const [index, name] of names.entries()) {
        // A disguise may hide that there is something to reset, but not what it is. So one probe is enough, in turns.
        if (at > 0 && !isThorough && index !== at % names.length) continue;
        await database.query('delete from t');
        await ask(wrap(dirty));
        assert.deepEqual((await answersOf([name]))[0], clean[index], `${disguise}: ${name}`);
      }
    }
    assert.deepEqual(rowsOf(await ask("select hex('é'), n from two order by n")), [
      ['C3A9', 1],
      ['C3A9', 2],
    ]);
  });
}

test('a lock is free for others by the time of the next request', async () => {
  for (const sql of [
    "select get_lock('free me', 0)",
    "select n from two where get_lock('free me', 0)",
    "select 1; do get_lock('free me', 0)",
    "/*! select get_lock('free me', 0) */",
    "select get_lock('free me', 0), (select 1 union select 2)",
  ]) {
    await ask(sql);
    await ask('select 1');
    const [row] = await database.query("select is_free_lock('free me') as free");
    assert.equal(Number(row?.free), 1, sql);
  }
});

test('a write after `autocommit = 0` is committed', async () => {
  await ask('set autocommit = 0');
  assert.equal(documentOf(await ask("insert into t (v) values ('seen')")).MYSQL_ERRNO, undefined);
  assert.equal((await database.query("select id from t where v = 'seen'")).length, 1);
});

test('nothing uncommitted remains: neither visible to the next request nor blocking others', async () => {
  for (const begin of ['begin', 'set autocommit = 0', 'start transaction', '/*! begin */']) {
    await ask(`${begin}; insert into t (v) values ('ghost'); update two set n = n + 10`);
    assert.equal(cellOf(await ask("select count(*) from t where v = 'ghost'")), 0, begin);
    await database.query('set innodb_lock_wait_timeout = 5; update two set n = n + 0');
    assert.deepEqual(rowsOf(await ask('select n from two order by n')), [[1], [2]], begin);
  }
});

// read_only, of the section or of a request: nothing is written, by whatever path a statement tries.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { documentOf, outcomeOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
/** Its first section may write; the one beside it may not. */
let gateway: Gateway;
const strict = 'strict';

before(async () => {
  database = await startDatabase();
  for (const sql of [
    'create table t (id int primary key); ',
    'insert into t values (1)',
    'create function f_write() returns int begin insert into t values (7); return 1; end',
    'create function f_read() returns int return (select count(*) from t)',
    'create procedure p_write() insert into t values (8)',
  ]) {
    await database.query(sql);
  }
  gateway = await startGateway({
    database,
    settings: { workers: 1, pool: 1 },
    beside: { [strict]: { database, settings: { pool: 1, read_only: 'on' } } },
  });
});
after(async () => {
  await gateway?.stop();
  await database.stop();
});

const messageOf = (reply: Reply) => reply.json<{ ERROR: string }>().ERROR;

/** Both ways to make a request read-only. */
const ways: Readonly<Record<string, (SQL: string) => ReturnType<Gateway['dbPost']>>> = {
  'read_only = on': (SQL) => gateway.dbPost({ SERVER: strict, SQL }),
  READ_ONLY: (SQL) => gateway.dbPost({ SQL, READ_ONLY: true }),
};

for (const [way, ask] of Object.entries(ways)) {
  test(`${way}: reads are answered`, async () => {
    for (const sql of [
      'select * from t',
      'with c as (select id from t) select * from c',
      '(select 1) union (select 2)',
      'show tables',
      'explain select * from t',
      'select f_read()',
      "select 'insert into t', `id` from t -- delete",
    ]) {
      assert.ok(rowsOf(await ask(sql)).length > 0, sql);
    }
  });

  test(`${way}: a statement that could write is refused, and not sent`, async () => {
    for (const sql of [
      'insert into t values (2)',
      'delete from t',
      'with c as (select 1) delete from t',
      '/* select */ update t set id = 5',
      'select 1; insert into t values (2)',
      'select 1; commit; insert into t values (2)',
      'commit',
      '/*! insert into t values (2) */',
      'select 1 /*! into outfile "x" */',
      "select * from t into outfile '/tmp/never'",
      "select * from t into dumpfile '/tmp/never'",
      'select * from t for update',
      'call p_write()',
      'set session transaction read write',
      'create table u (a int)',
      'create temporary table u (a int)',
      'explain analyze delete from t',
      'analyze delete from t',
      "select get_lock('l', 0)",
      'lock tables t write',
      'do sleep(0)',
      'nonsense',
    ]) {
      assert.equal(outcomeOf(await ask(sql)), '403 READ_ONLY not_executed', sql);
    }
    assert.equal((await database.query('select * from t')).length, 1);
  });

  test(`${way}: a misspelt statement is reported as not recognised, with its first word`, async () => {
    for (const [sql, shown] of [
      ['selct 1', '"selct"'],
      ['/* Selekt */ Selct * from t', '"Selct"'],
      [`${'x'.repeat(100)} 1`, `"${'x'.repeat(32)}…"`],
    ] as const) {
      const reply = await ask(sql);
      assert.equal(outcomeOf(reply), '403 READ_ONLY not_executed', sql);
      const message = messageOf(reply);
      assert.match(message, /does not recognise the statement: no statement begins with /);
      assert.ok(message.includes(shown), message);
    }
    assert.match(messageOf(await ask('delete from t')), /may write/);
    assert.match(messageOf(await ask('select 1 \0')), /servers may read it differently/);
  });

  test(`${way}: a function's write is refused by the server, in its READ ONLY transaction`, async () => {
    assert.equal(documentOf(await ask('select f_write()')).MYSQL_ERRNO, 1792);
    assert.equal((await database.query('select * from t')).length, 1);
  });
}

test('READ_ONLY ends with its request', async () => {
  rowsOf(await gateway.dbPost({ SQL: 'select * from t', READ_ONLY: true }));
  assert.equal(
    documentOf(await gateway.dbPost({ SQL: 'replace into t values (1)' })).MYSQL_ERRNO,
    undefined,
  );
});

test('READ_ONLY false does not open a read-only section', async () => {
  const reply = await gateway.dbPost({ SERVER: strict, SQL: 'delete from t', READ_ONLY: false });
  assert.equal(outcomeOf(reply), '403 READ_ONLY not_executed');
});

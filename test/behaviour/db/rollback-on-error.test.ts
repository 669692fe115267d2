// ROLLBACK_ON_ERROR: what is rolled back, and what the reply says about it.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { type Document, documentOf } from '../../support/db-results.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 1 },
  {
    prepare: async (database) => {
      await database.query(`
        create table t (id int primary key) engine = InnoDB;
        create table plain (id int) engine = MyISAM;
        create table written (v int primary key) engine = InnoDB;
        create function f_insert(id int) returns int begin insert into t values (id); return id; end;
        create procedure p_mixed() begin insert into t values (8); insert into t values (8); end;
        create procedure p_nonsense()
          begin insert into t values (8); commit; prepare s from 'nonsense'; end`);
    },
  },
);
beforeEach(() =>
  database.query(
    'delete from t; delete from plain; insert into t values (1); drop table if exists d',
  ),
);

const duplicate = 'insert into t values (1)';

/** Whether the reply to a text that fails says that all of it is undone. */
async function isUndone(SQL: string): Promise<boolean | undefined> {
  const reply = await gateway.dbPost({ SQL, ROLLBACK_ON_ERROR: true });
  return documentOf(reply).ROLLBACK_ON_ERROR_SUCCESS;
}

async function outcomeOf(sql: string): Promise<unknown> {
  const reply = await gateway.post('/v1/query', { sql });
  return reply.json<{ outcome?: unknown }>().outcome;
}

type Case = {
  readonly what: string;
  readonly sql: string;
  readonly success: boolean;
  readonly outcome: string | undefined;
  readonly left: string;
};

const cases: readonly Case[] = [
  { what: 'one statement', sql: duplicate, success: true, outcome: undefined, left: '1' },
  {
    what: 'one statement of many rows',
    sql: 'insert into t values (2), (3), (1)',
    success: true,
    outcome: undefined,
    left: '1',
  },
  {
    what: 'a statement that committed before',
    sql: `insert into t values (2); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a transaction',
    sql: `begin; insert into t values (2); ${duplicate}; commit`,
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
  {
    what: 'a transaction in other words',
    sql: `set autocommit = 0; insert into t values (2); ${duplicate}`,
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
  {
    what: 'a transaction that was committed',
    sql: `begin; insert into t values (2); commit; ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a transaction with DDL in it',
    sql: `begin; insert into t values (2); create table d (a int); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'DDL that fails, and has committed all the same',
    sql: 'begin; insert into t values (2); create table t (a int)',
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a second transaction after a first',
    sql: `begin; insert into t values (2); commit; begin; insert into t values (3); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a transaction that a second BEGIN has committed',
    sql: `begin; insert into t values (2); begin; insert into t values (3); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a transaction that autocommit = 1 has committed',
    sql: `set autocommit = 0; insert into t values (2); set autocommit = 1; ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'a transaction that was rolled back by itself',
    sql: `begin; insert into t values (2); rollback; ${duplicate}`,
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
  {
    what: 'a write before the transaction',
    sql: `insert into t values (2); begin; insert into t values (3); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  },
  {
    what: 'reads before the error',
    sql: `select 1; select * from t; ${duplicate}`,
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
  {
    what: 'a transaction that wrote to a table without transactions',
    sql: `begin; insert into t values (2); insert into plain values (3); ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 3',
  },
  {
    what: 'a transaction that wrote to such a table, and was rolled back by itself',
    sql: `begin; insert into plain values (3); rollback; ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 3',
  },
  ...['select f_insert(2)', 'do f_insert(2)', 'set @a = f_insert(2)'].map((sql) => ({
    what: `a function that writes: ${sql}`,
    sql: `${sql}; ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1 2',
  })),
  {
    what: 'a function that writes in a transaction',
    sql: `begin; select f_insert(2); ${duplicate}`,
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
  {
    what: 'a setting of the whole server',
    sql: `set global long_query_time = @@global.long_query_time; ${duplicate}`,
    success: false,
    outcome: 'partial',
    left: '1',
  },
  {
    what: 'a syntax error at the end of a transaction',
    sql: 'begin; insert into t values (2); nonsense',
    success: true,
    outcome: 'rolled_back',
    left: '1',
  },
];

for (const { what, sql, success, outcome, left } of cases) {
  test(`${what}: ${success ? 'all undone' : 'committed statements remain'}`, async () => {
    const document: Document = documentOf(
      await gateway.dbPost({ SQL: sql, ROLLBACK_ON_ERROR: true }),
    );
    assert.ok(document.MYSQL_ERRNO !== undefined);
    assert.equal(document.ROLLBACK_ON_ERROR, true);
    const rows = await database.query(
      'select id from t union all select id from plain order by id',
    );
    assert.deepEqual(
      [document.ROLLBACK_ON_ERROR_SUCCESS, document.OUTCOME, rows.map(({ id }) => id).join(' ')],
      [success, outcome, left],
    );
    const next = documentOf(await gateway.dbPost({ SQL: 'insert into t values (9)' }));
    assert.equal(next.MYSQL_ERRNO, undefined);
  });
}

test('a procedure that committed in its middle is not called undone', async () => {
  assert.equal(await isUndone('call p_mixed()'), false);
  const [row] = await database.query('select count(*) as n from t where id = 8');
  assert.equal(Number(row?.n), 1);
});

test('a text that the session cuts elsewhere than the gateway is not called undone', async () => {
  for (const sql of [
    `set sql_mode = 'no_backslash_escapes'; select '\\'; insert into t values (2); ${duplicate}; -- '`,
    `set sql_mode = 'ansi_quotes'; select "\\" from (select 1 as "\\") x; insert into t values (3); ${duplicate}; -- "`,
  ]) {
    assert.equal(await isUndone(sql), false, sql);
  }
  const rows = await database.query('select id from t order by id');
  assert.deepEqual(rows.flatMap(Object.values), [1, 2, 3]);
  // A session that reads these otherwise refuses them: their last literal is not closed.
  assert.equal(await isUndone("insert into t values (5), (length('it\\'s; it') - 7)"), true);
});

test('a procedure that committed before a syntax error of its own is not called undone', async () => {
  assert.equal(await isUndone('call p_nonsense()'), false);
  await database.query('delete from t where id = 8');
  assert.equal(await isUndone('begin; insert into t values (2); call p_nonsense()'), false);
  await database.query('delete from t where id = 8');
  assert.equal(await outcomeOf('call p_nonsense()'), 'partial');
  const rows = await database.query('select id from t order by id');
  assert.deepEqual(rows.flatMap(Object.values), [1, 2, 8]);
});

test('a block that committed is not called undone', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('blocks outside of routines are of MariaDB');
  const insert = (id: number) => `insert into t values (${id})`;
  for (const sql of [
    `begin not atomic ${insert(2)}; end; ${duplicate}`,
    `begin not atomic ${insert(3)}; ${duplicate}; end`,
    `set statement max_statement_time = 10 for begin not atomic ${insert(4)}; ${duplicate}; end`,
    `set sql_mode = oracle; begin ${insert(5)}; ${duplicate}; end`,
  ]) {
    assert.equal(await isUndone(sql), false, sql);
  }
  const rows = await database.query('select id from t order by id');
  assert.deepEqual(rows.flatMap(Object.values), [1, 2, 3, 4, 5]);
});

test('a table that MariaDB dropped before it failed to replace it is not called undone', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('CREATE OR REPLACE TABLE is of MariaDB');
  const sql = 'create or replace table d (a int primary key) select 1 as a union all select 1';
  await database.query('create table d (a int)');
  assert.equal(await isUndone(sql), false);
  await database.query('create table d (a int)');
  assert.equal(await outcomeOf(sql), 'partial');
  await assert.rejects(database.query('select * from d'), { errno: 1146 });
});

test('accounts before the one that the server refuses are not called undone', async () => {
  await database.query("create user 'taken'@'localhost'");
  const sql = "create user 'fresh'@'localhost', 'taken'@'localhost'";
  const found = [await isUndone(sql), await outcomeOf(sql)];
  await database.query("drop user 'taken'@'localhost'; drop user if exists 'fresh'@'localhost'");
  assert.deepEqual(found, [false, 'partial']);
});

test('without an error, or without the key, the two keys are not there', async () => {
  for (const asked of [
    { SQL: 'insert into t values (5)', ROLLBACK_ON_ERROR: true },
    { SQL: duplicate },
    { SQL: duplicate, ROLLBACK_ON_ERROR: false },
  ]) {
    const document = documentOf(await gateway.dbPost(asked));
    assert.equal(document.ROLLBACK_ON_ERROR, undefined);
    assert.equal(document.ROLLBACK_ON_ERROR_SUCCESS, undefined);
  }
  const [row] = await database.query('select count(*) as n from t where id = 5');
  assert.equal(Number(row?.n), 1);
});

const insert = (v: number) => `insert into written values (${v})`;
const fails = 'select * from nope';

const requests = [
  fails,
  `begin; ${insert(1)}; ${fails}`,
  `${insert(1)}; ${fails}`,
  `set autocommit=0; ${insert(1)}; ${fails}`,
  `set autocommit=0; ${insert(1)}; set autocommit=1; ${fails}`,
  `begin; ${insert(1)}; begin; ${insert(2)}; ${fails}`,
  `begin; ${insert(1)}; start transaction; ${fails}`,
  `begin; ${insert(1)}; commit; ${fails}`,
  `begin; ${insert(1)}; rollback; ${fails}`,
  `begin; ${insert(1)}; rollback; ${insert(2)}; ${fails}`,
  `begin; ${insert(1)}; savepoint s; ${insert(2)}; rollback to savepoint s; ${fails}`,
  `begin; ${insert(1)}; create table if not exists made (v int); ${fails}`,
  `begin; ${insert(1)}; create table written (v int)`,
  `begin; ${insert(1)}; ${insert(1)}`,
];

test('reports a complete rollback exactly when it is one', async (t) => {
  for (const SQL of requests) {
    await t.test(SQL, async () => {
      await database.query('delete from written');
      const reply = await gateway.dbPost({ SQL, ROLLBACK_ON_ERROR: true });
      const document = reply.json<Record<string, unknown>>();
      const standing = await database.query('select v from written');
      assert.equal(document.ROLLBACK_ON_ERROR, true);
      assert.equal(document.ROLLBACK_ON_ERROR_SUCCESS, standing.length === 0);
      const outcome = standing.length === 0 ? 'rolled_back' : 'partial';
      if (SQL.includes('; ')) assert.equal(document.OUTCOME, outcome);
    });
  }
});

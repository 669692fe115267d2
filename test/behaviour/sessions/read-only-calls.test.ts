// The calls that a read-only request may make. READ ONLY does not stop everything that a stored function can do, so the gateway examines
// the function first.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { documentOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';

/** A global variable that nothing else depends on. */
const variable = 'default_week_format';
const reader = `reader${process.pid}`;
/** The section of an account that sees neither what functions nor what views consist of. */
const blind = 'blind';

/** The section with sessions in Oracle's mode, where packages are called. */
const oracle = 'oracle';

let database: Database;
let gateway: Gateway;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table t (id int primary key, note varchar(20));
    insert into t values (1, 'one'), (2, 'two');
    create procedure p_global() set global ${variable} = 3;
    create procedure p_reads(out n int) select count(*) into n from t;
    create function f_global() returns int begin set global ${variable} = 3; return 1; end;
    create function f_at() returns int begin declare n int; set n = 1, @@global.${variable} = 3; return n; end;
    create function f_branch(n int) returns int begin if n > 0 then set global ${variable} = 3; end if; return n; end;
    create function f_calls() returns int begin call p_global(); return 1; end;
    create function f_file() returns int begin declare n int; select 1 into outfile '/tmp/${database.name}'; return 1; end;
    create function f_lock() returns int return get_lock('${database.name}', 0);
    create function f_quoted_lock() returns int return \`get_lock\`('${database.name}', 0);
    create function f_kill() returns int begin if false then kill 1; end if; return 1; end;
    create function f_reads(n int) returns int
      begin
        declare found, done int default 0;
        declare names cursor for select case when id > 1 then note else note end as name from t where id <= n;
        declare continue handler for not found set done = 1;
        counting: while found < n do
          if found % 2 = 0 then set found = found + 1; iterate counting; else set found = found + 1; end if;
        end while;
        call p_reads(found);
        return (select count(*) from t as one where one.note <> 'into outfile') + 0 * found;
      end;
    create function f_writes() returns int begin insert into t values (7, 'seven'); return 1; end;
    create view v_global as select f_global() as n;
    create view v_deep as select n from v_global;
    create view v_lock as select id from t for update;
    create function \`f_größe\`() returns int begin set global ${variable} = 3; return 1; end;
    create function f_handler() returns int
      begin declare exit handler for not found, sqlexception kill 1; return 1; end;
    create view v_plain as select id, upper(note) as note from t;
    create view v_calls as select id, f_reads(id) as n from v_plain;
    create function f_view() returns int return (select count(*) from v_deep);
    create user ${reader} identified by 'pw';
    grant select, execute on ${database.name}.* to ${reader}`);
  const { host, port, name, serverKey } = database;
  gateway = await startGateway({
    database,
    settings: { workers: 1, pool: 2 },
    beside: {
      [blind]: {
        database: { host, port, name, serverKey, user: reader, password: 'pw' },
        settings: { pool: 2, read_only: 'on' },
      },
      [oracle]: { database, settings: { pool: 2, init_sql: "set sql_mode = 'oracle'" } },
    },
  });
});
after(async () => {
  await gateway?.stop();
  await database.stop();
});

/** Every way to say that a request only reads; each answers with status, code and message. */
const ways: Readonly<Record<string, (sql: string) => Promise<string>>> = {
  READ_ONLY: async (SQL) => {
    const reply = await gateway.dbPost({ SQL, READ_ONLY: true });
    const { CODE, ERROR, MYSQL_ERRNO } = reply.json<ReturnType<typeof documentOf>>();
    return `${reply.status} ${CODE ?? MYSQL_ERRNO ?? ''} ${ERROR ?? ''}`;
  },
  'read_only of /v1/query': async (sql) =>
    reported(await gateway.post('/v1/query', { sql, read_only: true })),
  'a read-only batch': async (sql) =>
    reported(
      await gateway.post('/v1/batch', {
        statements: [{ sql: 'select 1' }, { sql }],
        read_only: true,
      }),
    ),
  'a held read-only transaction': async (sql) => {
    const held = await beginHeld(gateway, { read_only: true });
    const reply = await held.query(sql);
    await held.rollback();
    return reported(reply);
  },
};

function reported(reply: Awaited<ReturnType<Gateway['post']>>): string {
  const { code, detail } = reply.json<{ code?: string; detail?: string }>();
  return `${reply.status} ${code ?? ''} ${detail ?? ''}`;
}

const globalValue = async () =>
  Number((await database.query(`select @@global.${variable} as value`))[0]?.value);
const isLocked = async () =>
  (await database.query(`select is_used_lock('${database.name}') as holder`))[0]?.holder !== null;

for (const [way, ask] of Object.entries(ways)) {
  test(`${way}: a stored function that acts outside of the transaction is refused, however it is reached`, async () => {
    for (const call of [
      ...['f_global()', 'F_GLOBAL ()', '`f_global`()', 'f_at()', 'f_branch(1)', 'f_calls()'],
      ...['`f_größe`()', 'F_GRÖßE()', 'f_handler()'],
      ...['f_file()', 'f_lock()', 'f_quoted_lock()', 'f_kill()', 'f_view()'],
      ...[`${database.name}.f_global()`, `\`${database.name}\` . \`f_global\` /* */ ()`],
      ...['(select n from v_global)', '(select max(n) from v_deep)', 'upper(f_reads(f_global()))'],
    ]) {
      assert.match(await ask(`select ${call}`), /^403 READ_ONLY /, call);
    }
    assert.equal(await globalValue(), 0);
    assert.equal(await isLocked(), false);
  });

  test(`${way}: a lock is refused, however the function is spelled`, async () => {
    const name = `'${database.name}'`;
    for (const sql of [
      `select get_lock(${name}, 0)`,
      `select GET_LOCK /* */ (${name}, 0)`,
      `select \`get_lock\`(${name}, 0)`,
      `select \`Get_Lock\` -- spaces\n (${name}, 0)`,
      `select "get_lock"(${name}, 0)`,
      `select mariadb_schema.get_lock(${name}, 0)`,
      `select \`release_all_locks\`()`,
      'select * from t for update',
      'select * from t lock in share mode',
      'select * from (select * from t for update) as d',
    ]) {
      assert.match(await ask(sql), /^40[03] (READ_ONLY|NOT_IN_TRANSACTION) /, sql);
    }
    assert.equal(await isLocked(), false);
  });

  test(`${way}: a call that only reads is answered`, async () => {
    for (const sql of [
      'select f_reads(2)',
      'select n from v_calls',
      'select note from v_plain',
      'with f_global (n) as (select 1) select n from f_global',
      'select upper (note), `upper`(note), concat (note, 1), st_length(null) from t',
      'select row_number() over (order by id) as n, sum(id) over (partition by note) from t',
      `select n from json_table('[1,2]', '$[*]' columns (n int path '$')) as numbers`,
      'select table_name from information_schema.tables limit 1',
      'select f_global from (select 1 as f_global) as d',
      'explain select * from v_plain',
    ]) {
      assert.match(await ask(sql), /^200 /, sql);
    }
  });

  test(`${way}: a function's write is left to the server, which refuses it`, async () => {
    assert.match(await ask('select f_writes()'), /1792|403 /);
    assert.equal((await database.query('select * from t')).length, 2);
  });
}

test('a view that locks the rows that it reads is refused', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('views of MySQL forget the lock');
  const reply = await gateway.dbPost({ SQL: 'select * from v_lock', READ_ONLY: true });
  assert.equal(documentOf(reply, 403).CODE, 'READ_ONLY');
});

test('a function that was created a moment ago is looked into as well', async () => {
  await database.query(
    `create function f_new() returns int begin set global ${variable} = 3; return 1; end`,
  );
  const reply = await gateway.dbPost({ SQL: 'select f_new()', READ_ONLY: true });
  assert.equal(documentOf(reply, 403).CODE, 'READ_ONLY');
  assert.equal(await globalValue(), 0);
});

test('a call that the account may not see is refused, and the message names the grant', async () => {
  const refused = async (SQL: string) =>
    documentOf(await gateway.dbPost({ SERVER: blind, SQL }), 403).ERROR ?? '';
  assert.match(await refused('select f_reads(1)'), /routine f_reads .* GRANT S/);
  assert.match(await refused('select * from v_plain'), /view v_plain .* GRANT SHOW VIEW/);
  assert.equal(rowsOf(await gateway.dbPost({ SERVER: blind, SQL: 'select * from t' })).length, 2);
});

test('a literal with an escaped quote beside a function causes no doubt', async () => {
  const reply = await gateway.dbPost({ SQL: "select f_reads(2), 'it\\'s'", READ_ONLY: true });
  assert.deepEqual(rowsOf(reply), [[2, "it's"]]);
});

test('a statement that is not recognised is reported as not recognised', async () => {
  for (const SQL of ['selct 1', 'nonsense', 'select $a$ from t where $b$']) {
    const reply = await gateway.dbPost({ SQL, READ_ONLY: true });
    assert.match(documentOf(reply, 403).ERROR ?? '', /not recognise/, SQL);
  }
  const known = await gateway.dbPost({ SQL: 'delete from t', READ_ONLY: true });
  assert.doesNotMatch(documentOf(known, 403).ERROR ?? '', /not recognise/);
});

test('the functions of a package are looked into', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('packages are of MariaDB');
  await database.query(`set sql_mode = oracle;
    create package good as function one return int; end;
    create package body good as function one return int as n int := 1; begin n := n + 1; return n; end; end;
    create package bad as function one return int; end;
    create package body bad as function one return int as begin set global ${variable} = 3; return 1; end; end`);
  const ask = (SQL: string) => gateway.dbPost({ SERVER: oracle, SQL, READ_ONLY: true });
  assert.deepEqual(rowsOf(await ask('select good.one()')), [[2]]);
  assert.equal(documentOf(await ask('select bad.one()'), 403).CODE, 'READ_ONLY');
  assert.equal(await globalValue(), 0);
});

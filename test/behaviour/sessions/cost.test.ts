// The cost of a clean session: nothing for ordinary statements; and the promises of `always` and `init_sql`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
/** Two separate servers: one has odd global settings, the other must get no other statements. */
let odd: Database | undefined;
let quiet: Database | undefined;
/** One gateway for all tests. Each setting has its own section, and so its own pool. */
let gateway: Gateway;

const init_sql = "set time_zone = '+03:00'; set sql_mode = 'ANSI_QUOTES', @mine = 'set;'";
/** Settings of an operator that would keep a write from being committed, by the name of their section. */
const uncommitting: Readonly<Record<string, string>> = {
  manual: 'set autocommit = 0',
  chained: 'set completion_type = 1',
  released: 'set completion_type = 2',
};
const sections: Readonly<Record<string, Settings>> = {
  // Its session is new: to set a variable on a used one costs a reset before it too.
  fresh: { pool: 1 },
  always: { pool: 1, session_reset: 'always' },
  initial: { pool: 1, init_sql },
  ...Object.fromEntries(
    Object.entries(uncommitting).map(([section, sql]) => [section, { pool: 2, init_sql: sql }]),
  ),
};

before(async () => {
  database = await startDatabase();
  await database.query('create table t (id int primary key auto_increment, v varchar(50), n int)');
  if (process.env.DBHTTPD_TEST_MYSQL === undefined) {
    odd = await startDatabase({
      args: [
        '--autocommit=0',
        '--completion-type=RELEASE',
        '--character-set-server=latin1',
        '--sql-mode=',
        '--init-connect=set @x=1',
      ],
    });
    quiet = await startDatabase({ own: true });
  }
  gateway = await startGateway({
    database,
    settings: { workers: 1, pool: 1 },
    beside: {
      ...Object.fromEntries(
        Object.entries(sections).map(([name, settings]) => [name, { database, settings }]),
      ),
      ...(odd && { odd: { database: odd, settings: { pool: 1 } } }),
      ...(quiet && { quiet: { database: quiet, settings: { pool: 2 } } }),
    },
  });
});
after(async () => {
  await gateway?.stop();
  for (const server of [odd, quiet, database]) await server?.stop();
});

const ask = (SQL: string, SERVER = 'world') => gateway.dbPost({ SERVER, SQL });

/** Takes away what earlier tests have left in the session, an id or a count of rows too. */
async function cleanSession(): Promise<void> {
  rowsOf(await ask('set @left = 1'));
  rowsOf(await ask('select 1'));
}

/** Resolves to a function that counts the resets from now on. */
async function countResets(): Promise<() => Promise<number>> {
  const read = () => readMetric(gateway, 'dbhttpd_session_resets_total');
  const from = await read();
  return async () => (await read()) - from;
}

const ordinary = [
  'select 1',
  'select * from t where id = 1',
  "select /* a note */ t.id, count(*), max(t.n), coalesce(t.v, 'none') from t join t u using (id) group by id",
  'with c as (select id from t) select * from c union all (select n from t) order by 1 limit 3',
  "select date_format(now(), '%Y'), concat(v, '@x; set names latin1') from t where v like '%@%'",
  "insert into t (v, n) values ('a', 1), ('b', 2)",
  "insert into t values (1, 'c', 3) on duplicate key update n = values(n)",
  "replace into t values (2, 'd', 4)",
  "update t set n = n + 1 where v in ('a', 'b')",
  'insert into t (v, n) select v, n from t',
  'delete from t where n > 100',
  'show tables',
  'select connection_id()',
];

test('ordinary reads and writes cause no reset', async () => {
  await cleanSession();
  const resets = await countResets();
  const session = cellOf(await ask('select connection_id()'));
  for (const SQL of ordinary) rowsOf(await ask(SQL));
  rowsOf(await gateway.dbPost({ SQL: 'insert into t (v, n) values (?, ?)', PARAMS: ["'@x", 5] }));
  rowsOf(await gateway.db({ SQL: 'select * from t where v = :v', PARAMS: { v: 'a' } }));
  assert.equal(await resets(), 0);
  assert.equal(cellOf(await ask('select connection_id()')), session);
});

test('a request that left something costs one reset, counted', async () => {
  const dirty = ['set @x = 1', 'begin', 'select 1; select 2', 'select get_lock("l", 0)'];
  const resets = await countResets();
  for (const [index, SQL] of dirty.entries()) {
    rowsOf(await ask(SQL, 'fresh'));
    await ask('select 1', 'fresh');
    assert.equal(await resets(), index + 1, SQL);
  }
});

test('a request that reads what an earlier one left costs one reset before it, counted', async () => {
  await cleanSession();
  rowsOf(await ask("insert into t (v) values ('x')"));
  const resets = await countResets();
  assert.equal(cellOf(await ask('select last_insert_id()')), 0);
  assert.equal(await resets(), 1);
});

test('session_reset = always resets after each request', async () => {
  const resets = await countResets();
  for (const SQL of ordinary) rowsOf(await ask(SQL, 'always'));
  await ask('select 1', 'always');
  assert.ok((await resets()) >= ordinary.length);
});

test('init_sql holds after the connect and after each reset, whatever a request sets', async () => {
  const state = "select @@time_zone, @@sql_mode, @mine, @@autocommit, database(), hex('é')";
  const expected = [['+03:00', 'ANSI_QUOTES', 'set;', 1, database.name, 'C3A9']];
  assert.deepEqual(rowsOf(await ask(state, 'initial')), expected);
  for (const SQL of [
    "set time_zone = '+09:00', sql_mode = '', @mine = 2, autocommit = 0",
    'use information_schema; set names latin1',
    'set time_zone = "nonsense"',
    'select * from missing',
  ]) {
    await ask(SQL, 'initial');
    assert.deepEqual(rowsOf(await ask(state, 'initial')), expected, SQL);
  }
});

test('a write is committed as the request demands, whatever init_sql sets', async () => {
  for (const [section, init] of Object.entries(uncommitting)) {
    await database.query('delete from t');
    const sql = 'insert into t (n) values (?)';
    rowsOf(await gateway.dbPost({ SERVER: section, SQL: sql, PARAMS: [1] }));
    rowsOf(await ask('set @x = 1', section));
    const isolation = 'serializable';
    const statements = [{ sql, params: [3] }];
    const held = await beginHeld(gateway, { section, isolation });
    for (const reply of [
      await gateway.post('/v1/query', { section, sql, params: [2] }),
      await gateway.post('/v1/batch', { section, isolation, statements }),
      await held.query(sql, { params: [4] }),
      await held.commit(),
    ]) {
      assert.equal(reply.status, 200, reply.text);
    }
    const written = (await database.query('select n from t order by n')).map(({ n }) => n);
    assert.deepEqual(written, [1, 2, 3, 4], init);
  }
});

test('a server with odd global settings serves as any other', async (t) => {
  if (!ownServerOnly(t) || odd === undefined) return;
  await odd.query('create table t (v varchar(9)) engine = innodb; commit');
  for (let round = 0; round < 2; round += 1) {
    rowsOf(await ask("insert into t values ('é')", 'odd'));
    assert.equal(cellOf(await ask("select hex('é')", 'odd')), 'C3A9');
    const statements = [{ sql: 'delete from t where v is null' }];
    const wish = { section: 'odd', statements, isolation: 'serializable' };
    const batch = await gateway.post('/v1/batch', wish);
    assert.equal(batch.status, 200, batch.text);
    assert.equal((await odd.query('select v from t')).length, round + 1);
    await ask('set names latin1', 'odd');
  }
});

/** The interval of the control connection's pings. 480 requests are far more. */
const controlPingMs = 5_000;

test('under load nothing is sent but the statements: no reset, no setting, no ping', async (t) => {
  const server = quiet;
  if (!ownServerOnly(t) || server === undefined) return;
  const count = async () => {
    const rows = await server.query(
      "show global status where variable_name in ('Com_admin_commands', 'Com_set_option', 'Com_change_db')",
    );
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  const load = (each: number) =>
    Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let n = 0; n < each; n += 1) rowsOf(await ask('select 1', 'quiet'));
      }),
    );
  await load(5);
  const countBefore = await count();
  const from = performance.now();
  await load(60);
  const pings = Math.ceil((performance.now() - from) / controlPingMs);
  // The second session is opened by the load, with one SET.
  assert.ok((await count()) - countBefore <= 1 + pings);
});

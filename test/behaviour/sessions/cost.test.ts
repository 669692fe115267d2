// What a clean session costs: nothing for ordinary statements; and what `always` and `init_sql` promise.
// Must not know how sessions are reset: a counter and the general log tell.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import type { Settings } from '../../support/ini-text.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;

before(async () => {
  database = await startDatabase();
  await database.query('create table t (id int primary key auto_increment, v varchar(50), n int)');
});
after(() => database.stop());

async function withGateway(settings: Settings, use: (gateway: Gateway) => Promise<void>) {
  const gateway = await startGateway({ database, settings: { workers: 1, pool: 1, ...settings } });
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

const resets = (gateway: Gateway) => readMetric(gateway, 'dbhttpd_session_resets_total');

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
  await withGateway({}, async (gateway) => {
    for (const SQL of ordinary) rowsOf(await gateway.dbPost({ SQL }));
    rowsOf(await gateway.dbPost({ SQL: 'insert into t (v, n) values (?, ?)', PARAMS: ["'@x", 5] }));
    rowsOf(await gateway.db({ SQL: 'select * from t where v = :v', PARAMS: { v: 'a' } }));
    assert.equal(await resets(gateway), 0);
    const connects = await readMetric(gateway, 'dbhttpd_connects_total', { result: 'ok' });
    assert.equal(connects, 1);
  });
});

test('a request that left something costs one reset, counted', async () => {
  await withGateway({}, async (gateway) => {
    const dirty = ['set @x = 1', 'begin', 'select 1; select 2', 'select get_lock("l", 0)'];
    for (const [index, SQL] of dirty.entries()) {
      rowsOf(await gateway.dbPost({ SQL }));
      await gateway.dbPost({ SQL: 'select 1' });
      assert.equal(await resets(gateway), index + 1, SQL);
    }
  });
});

test('a request that reads what an earlier one left costs one reset before it, counted', async () => {
  await withGateway({}, async (gateway) => {
    rowsOf(await gateway.dbPost({ SQL: "insert into t (v) values ('x')" }));
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select last_insert_id()' })), 0);
    assert.equal(await resets(gateway), 1);
  });
});

test('session_reset = always resets after each request', async () => {
  await withGateway({ session_reset: 'always' }, async (gateway) => {
    for (const SQL of ordinary) rowsOf(await gateway.dbPost({ SQL }));
    await gateway.dbPost({ SQL: 'select 1' });
    assert.ok((await resets(gateway)) >= ordinary.length);
  });
});

test('init_sql holds after the connect and after each reset, whatever a request sets', async () => {
  const init_sql = "set time_zone = '+03:00'; set sql_mode = 'ANSI_QUOTES', @mine = 'set;'";
  const state = "select @@time_zone, @@sql_mode, @mine, @@autocommit, database(), hex('é')";
  await withGateway({ init_sql }, async (gateway) => {
    const expected = [['+03:00', 'ANSI_QUOTES', 'set;', 1, database.name, 'C3A9']];
    assert.deepEqual(rowsOf(await gateway.dbPost({ SQL: state })), expected);
    for (const SQL of [
      "set time_zone = '+09:00', sql_mode = '', @mine = 2, autocommit = 0",
      'use information_schema; set names latin1',
      'set time_zone = "nonsense"',
      'select * from missing',
    ]) {
      await gateway.dbPost({ SQL });
      assert.deepEqual(rowsOf(await gateway.dbPost({ SQL: state })), expected, SQL);
    }
  });
});

test('a write is committed where it is told to be, whatever init_sql says', async () => {
  for (const init_sql of [
    'set autocommit = 0',
    'set completion_type = 1',
    'set completion_type = 2',
  ]) {
    await withGateway({ init_sql, pool: 2 }, async (gateway) => {
      await database.query('delete from t');
      const sql = 'insert into t (n) values (?)';
      rowsOf(await gateway.dbPost({ SQL: sql, PARAMS: [1] }));
      rowsOf(await gateway.dbPost({ SQL: 'set @x = 1' }));
      const steps = { isolation: 'serializable', statements: [{ sql, params: [3] }] };
      const held = await beginHeld(gateway, { isolation: 'serializable' });
      for (const reply of [
        await gateway.post('/v1/query', { sql, params: [2] }),
        await gateway.post('/v1/batch', steps),
        await held.query(sql, { params: [4] }),
        await held.commit(),
      ]) {
        assert.equal(reply.status, 200, reply.text);
      }
      const written = (await database.query('select n from t order by n')).map(({ n }) => n);
      assert.deepEqual(written, [1, 2, 3, 4], init_sql);
    });
  }
});

test('a server whose global settings are odd serves as any other', async (t) => {
  if (!ownServerOnly(t)) return;
  const odd = await startDatabase({
    args: [
      '--autocommit=0',
      '--completion-type=RELEASE',
      '--character-set-server=latin1',
      '--sql-mode=',
      '--init-connect=set @x=1',
    ],
  });
  const gateway = await startGateway({ database: odd, settings: { workers: 1, pool: 1 } });
  try {
    await odd.query('create table t (v varchar(9)) engine = innodb; commit');
    for (let round = 0; round < 2; round += 1) {
      rowsOf(await gateway.dbPost({ SQL: "insert into t values ('é')" }));
      assert.equal(cellOf(await gateway.dbPost({ SQL: "select hex('é')" })), 'C3A9');
      const statements = [{ sql: 'delete from t where v is null' }];
      const batch = await gateway.post('/v1/batch', { statements, isolation: 'serializable' });
      assert.equal(batch.status, 200, batch.text);
      assert.equal((await odd.query('select v from t')).length, round + 1);
      await gateway.dbPost({ SQL: 'set names latin1' });
    }
  } finally {
    await gateway.stop();
    await odd.stop();
  }
});

/** How often the control connection pings; 480 requests are far more. */
const controlPingMs = 5_000;

test('under load nothing is sent but the statements: no reset, no setting, no ping', async (t) => {
  if (!ownServerOnly(t)) return;
  const own = await startDatabase({ own: true });
  const gateway = await startGateway({ database: own, settings: { workers: 1, pool: 2 } });
  const count = async () => {
    const rows = await own.query(
      "show global status where variable_name in ('Com_admin_commands', 'Com_set_option', 'Com_change_db')",
    );
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  const load = (each: number) =>
    Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let n = 0; n < each; n += 1) rowsOf(await gateway.dbPost({ SQL: 'select 1' }));
      }),
    );
  await load(5);
  const countBefore = await count();
  const from = performance.now();
  await load(60);
  const pings = Math.ceil((performance.now() - from) / controlPingMs);
  // The second session is opened by the load, with one SET.
  assert.ok((await count()) - countBefore <= 1 + pings);
  await gateway.stop();
  await own.stop();
});

// What views and triggers do to a session is gone before the next request, and costs nothing where they do nothing.
// Must not know how sessions are reset.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let other: Awaited<ReturnType<Database['connect']>>;

before(async () => {
  database = await startDatabase();
  for (const sql of [
    'create table t (id int primary key auto_increment, v varchar(50))',
    "insert into t (v) values ('one')",
    'create table noted (id int)',
    'create table locking (id int)',
    'create table counting (id int)',
    'create table marking (id int)',
    'create table noting (id int)',
    `create function f_lock() returns int begin do get_lock('named', 0); return 1; end`,
    'create function f_variable() returns int begin set @left = 4711; return 1; end',
    // MD5 is no built-in of MySQL 9: this is what a call reaches there.
    `create function md5(s varchar(50)) returns int begin do get_lock('named', 0); return 1; end`,
    'create function f_id() returns int return last_insert_id(4711)',
    "create function f_sees() returns varchar(50) return concat(ifnull(@left, 0), ' ', last_insert_id())",
    'create view locks as select v, f_lock() as x from t',
    'create view marks as select v, f_variable() as x from t',
    'create view counts as select v, f_id() as x from t',
    'create view sets_id as select last_insert_id(4711) as x',
    'create view beyond as select x from marks',
    'create view sees as select f_sees() as seen',
    'create view plain as select id, upper(v) as v from t',
    'create view plainer as select id from plain where id > 0',
    `create trigger locking_t before insert on locking for each row do get_lock('named', 0)`,
    'create trigger marking_t before insert on marking for each row set @left = 4711',
    'create trigger counting_t before insert on counting for each row set new.id = last_insert_id(4711)',
    'create trigger noting_t after insert on noting for each row insert into noted values (new.id)',
  ]) {
    await database.query(sql);
  }
  other = await database.connect();
});
after(async () => {
  other?.destroy();
  await database.stop();
});

async function withGateway(
  use: (gateway: Gateway) => Promise<void>,
  account: { readonly user: string; readonly password: string } = database,
): Promise<void> {
  const target = { ...database, ...account };
  const gateway = await startGateway({ database: target, settings: { workers: 1, pool: 1 } });
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

const resets = (gateway: Gateway) => readMetric(gateway, 'dbhttpd_session_resets_total');

async function assertNothingLeft(gateway: Gateway, after_: string): Promise<void> {
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select seen from sees' })), '0 0', after_);
  const [rows] = await other.query("select is_free_lock('named') as free");
  assert.equal(Number((rows as { free: unknown }[])[0]?.free), 1, after_);
}

const leaving = [
  "select md5('x')",
  'select md5(v) from t',
  'select v, x from locks',
  'select x from marks',
  'select x from counts where v = (select max(v) from t)',
  'select x from sets_id',
  'select x from beyond',
  'select id from t where exists (select 1 from locks)',
  'with c as (select * from marks) select x from c',
  'insert into noted select x from marks',
  'insert into locking values (1)',
  'insert into marking values (1)',
  'insert into counting values (1)',
];

test('nothing is left of what a view or a trigger does to the session', () =>
  withGateway(async (gateway) => {
    for (const SQL of leaving) {
      const reply = await gateway.dbPost({ SQL });
      assert.equal(reply.status, 200, `${SQL}: ${reply.text}`);
      await assertNothingLeft(gateway, SQL);
    }
    // A plain write leaves its id without any trigger.
    await gateway.dbPost({ SQL: "insert into t (v) values ('x')" });
    await assertNothingLeft(gateway, 'insert');
  }));

const harmless = [
  'select * from t',
  'select v from plain where id = 1',
  'select id from plainer',
  'select p.v from plain p join t on p.id = t.id',
  'insert into noting values (1)',
  'update noted set id = 2 where id in (select id from plainer)',
];

test('harmless views and triggers cost no reset', () =>
  withGateway(async (gateway) => {
    await gateway.dbPost({ SQL: 'select 1' });
    for (const SQL of harmless) {
      rowsOf(await gateway.dbPost({ SQL }));
      assert.equal(await resets(gateway), 0, SQL);
    }
  }));

/** An account that may read and write, and see what `more` lets it see. */
async function createAccount(more: string): Promise<{ user: string; password: string }> {
  const user = `named_${database.name.slice(-8)}`;
  const password = 'Secret-4711';
  await database.query(`create user ${user}@'%' identified by '${password}'`);
  await database.query(
    `grant select, insert, update, delete, execute${more} on ${database.name}.* to ${user}@'%'`,
  );
  return { user, password };
}

test('an account that may not see views: nothing is left, whatever they do, and tables cost no reset', async () => {
  const account = await createAccount(', trigger');
  try {
    await withGateway(async (gateway) => {
      for (const SQL of leaving) {
        const reply = await gateway.dbPost({ SQL });
        assert.equal(reply.status, 200, `${SQL}: ${reply.text}`);
        await assertNothingLeft(gateway, SQL);
      }
      const before_ = await resets(gateway);
      for (let n = 0; n < 5; n += 1) rowsOf(await gateway.dbPost({ SQL: 'select * from t' }));
      assert.ok((await resets(gateway)) <= before_ + 1);
      rowsOf(await gateway.dbPost({ SQL: 'select * from plain' }));
      assert.ok((await resets(gateway)) > before_, 'what a view is is not known');
    }, account);
  } finally {
    await database.query(`drop user ${account.user}@'%'`);
  }
});

test('tables made through the gateway are known at once, and so are views that take their place', () =>
  withGateway(async (gateway) => {
    rowsOf(
      await gateway.dbPost({ SQL: 'create table fresh (id int); insert into fresh values (1)' }),
    );
    await eventually('it is known', async () => {
      const before_ = await resets(gateway);
      for (let n = 0; n < 2; n += 1) rowsOf(await gateway.dbPost({ SQL: 'select * from fresh' }));
      return (await resets(gateway)) === before_;
    });
    await gateway.dbPost({ SQL: 'drop table fresh' });
    await gateway.dbPost({ SQL: 'create view fresh as select x as id from locks' });
    rowsOf(await gateway.dbPost({ SQL: 'select * from fresh' }));
    await assertNothingLeft(gateway, 'the view');
  }));

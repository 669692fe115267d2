// Changes to a session by views and triggers are gone before the next request. Views and triggers that change nothing cost nothing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cellOf, rowsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

let database: Database;
let other: Awaited<ReturnType<Database['connect']>>;
let gateway: Gateway;
/** The section whose account has no right to read views. */
const blind = 'blind';
let account: { readonly user: string; readonly password: string };

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
  account = await createAccount(', trigger');
  gateway = await startGateway({
    database,
    settings: { workers: 1, pool: 1 },
    beside: { [blind]: { database: { ...database, ...account }, settings: { pool: 1 } } },
  });
});
after(async () => {
  await gateway?.stop();
  if (account !== undefined) await database.query(`drop user ${account.user}@'%'`);
  other?.destroy();
  await database.stop();
});

const ask = (SQL: string, SERVER = 'world') => gateway.dbPost({ SERVER, SQL });
const resets = () => readMetric(gateway, 'dbhttpd_session_resets_total');

async function assertNothingLeft(after_: string, section?: string): Promise<void> {
  assert.equal(cellOf(await ask('select seen from sees', section)), '0 0', after_);
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

test('nothing is left of the effects of a view or a trigger on the session', async () => {
  for (const SQL of leaving) {
    const reply = await ask(SQL);
    assert.equal(reply.status, 200, `${SQL}: ${reply.text}`);
    await assertNothingLeft(SQL);
  }
  // A plain write leaves its id without any trigger.
  await ask("insert into t (v) values ('x')");
  await assertNothingLeft('insert');
});

const harmless = [
  'select * from t',
  'select v from plain where id = 1',
  'select id from plainer',
  'select p.v from plain p join t on p.id = t.id',
  'insert into noting values (1)',
  'update noted set id = 2 where id in (select id from plainer)',
];

test('harmless views and triggers cost no reset', async () => {
  // This removes what an earlier test has left.
  await ask('select 1');
  const before_ = await resets();
  for (const SQL of harmless) {
    rowsOf(await ask(SQL));
    assert.equal(await resets(), before_, SQL);
  }
});

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
  for (const SQL of leaving) {
    const reply = await ask(SQL, blind);
    assert.equal(reply.status, 200, `${SQL}: ${reply.text}`);
    await assertNothingLeft(SQL, blind);
  }
  const before_ = await resets();
  for (let n = 0; n < 5; n += 1) rowsOf(await ask('select * from t', blind));
  assert.ok((await resets()) <= before_ + 1);
  rowsOf(await ask('select * from plain', blind));
  assert.ok((await resets()) > before_, 'what a view is is not known');
});

test('tables made through the gateway are known at once, and so are views that take their place', async () => {
  rowsOf(await ask('create table fresh (id int); insert into fresh values (1)'));
  await eventually('it is known', async () => {
    const before_ = await resets();
    for (let n = 0; n < 2; n += 1) rowsOf(await ask('select * from fresh'));
    return (await resets()) === before_;
  });
  await ask('drop table fresh');
  await ask('create view fresh as select x as id from locks');
  rowsOf(await ask('select * from fresh'));
  await assertNothingLeft('the view');
});

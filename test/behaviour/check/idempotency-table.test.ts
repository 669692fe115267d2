// --check prints the table of idempotency keys, says what differs from it, which rights are missing, and how durable the server is.
// Must not know what the table is used for.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { createDaemon, type Daemon, type Finished, type Settings } from '../../support/daemon.ts';
import { type FakeMysql, startFakeMysql } from '../../support/database/fake-mysql.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { errorPacket } from '../../support/database/mysql-answer.ts';

const page = readFileSync('docs/exactly-once.md', 'utf8');

let database: Database;
/** A database whose name needs its quotes. */
let other: string;
/** The statement that creates the table `ledger`, as --check prints it. */
let creation: string;
before(async () => {
  database = await startDatabase();
  other = `${database.name}-it's "x"`;
  await database.query(`create database \`${other}\``);
  creation = creationIn((await check()).stdout);
});
after(async () => {
  await database?.query(`drop database if exists \`${other}\``);
  await database?.stop();
});
const daemons: Daemon[] = [];
const accounts: string[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
  for (const account of accounts.splice(0)) await database.query(`drop user ${account}`);
});

function check(settings: Settings = {}, server: FakeMysql['target'] = database): Promise<Finished> {
  const { name, host, port, user, password } = server;
  const reached = { database: name, host, port: String(port), user, password: password || null };
  const daemon = createDaemon({ ...reached, idempotency_table: 'ledger', ...settings });
  daemons.push(daemon);
  return daemon.run(['--check']);
}

/** What the page's command cuts out of what `--check` prints. */
function creationIn(stdout: string): string {
  const script = /sed -n '(.+)'/.exec(page)?.[1] ?? '';
  const cut = spawnSync('sed', ['-n', script], {
    input: stdout,
    encoding: 'utf8',
  }).stdout.trimEnd();
  assert.match(cut, /^CREATE TABLE [^;]*;$/, stdout);
  assert.equal(stdout.split('CREATE TABLE').length, 2, 'it is printed once');
  return cut;
}

/** Creates the table anew, as --check prints it, changed by what follows. */
async function createTable(...changes: readonly string[]): Promise<void> {
  await database.query('drop view if exists ledger');
  await database.query('drop table if exists ledger');
  await database.query(creation);
  for (const change of changes) await database.query(change);
}

/** What stderr says of the table, a line each. */
function faultsIn(finished: Finished, quoted = `\`${database.name}\`.\`ledger\``): string[] {
  const prefix = `dbhttpd: idempotency_table ${quoted}: `;
  return finished.stderr
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      assert.ok(line.startsWith(prefix), line);
      return line.slice(prefix.length);
    });
}

/** An account without rights, but for what it needs to enter the database. Its name needs its quotes. */
async function createAccount(): Promise<{ user: string; password: string; account: string }> {
  const user = `o'led-${randomBytes(3).toString('hex')}`;
  const account = `'${user.replace("'", "''")}'@'%'`;
  await database.query(`create user ${account} identified by 'Secret-4711'`);
  accounts.push(account);
  await database.query(`create table if not exists ${database.name}.entrance (id int)`);
  await database.query(`grant select on ${database.name}.entrance to ${account}`);
  return { user: `"${user}"`, password: 'Secret-4711', account };
}

for (const sqlMode of ['', 'ansi_quotes,no_backslash_escapes']) {
  test(`a missing table is a fault, and the statement that --check prints creates it (sql_mode '${sqlMode}')`, async () => {
    for (const [setting, quoted] of [
      ['keys', `\`${database.name}\`.\`keys\``],
      ["it's a-ledger", `\`${database.name}\`.\`it's a-ledger\``],
      [`${other}.ledger`, `\`${other}\`.\`ledger\``],
    ] as const) {
      const settings = { idempotency_table: JSON.stringify(setting) };
      const missing = await check(settings);
      assert.equal(missing.status, 78);
      assert.deepEqual(faultsIn(missing, quoted), [
        'it does not exist, or the account may not see it',
      ]);
      const connection = await database.connect({ database: 'information_schema' });
      await connection.query(`set sql_mode = '${sqlMode}'`);
      await connection.query(creationIn(missing.stdout));
      const there = await check(settings);
      assert.deepEqual([there.status, there.stderr], [0, '']);
      assert.equal(creationIn(there.stdout), creationIn(missing.stdout));
      await connection.query(`drop table ${quoted}`);
    }
  });
}

test('the statement stands by itself at the end, and is the one of the page', async () => {
  const { stdout } = await check({ idempotency_table: 'dbhttpd_keys' });
  const statement = creationIn(stdout);
  assert.ok(stdout.endsWith(`\n\n${statement}\n`), stdout);
  const shown = statement.replace(database.name, 'world').replaceAll(/^/gm, '    ');
  assert.ok(page.includes(`\n\n${shown}\n\n`), shown);
});

test('without idempotency_table there is no statement, and no warning about durability', async () => {
  const { status, stdout } = await check({ idempotency_table: null });
  assert.equal(status, 0);
  assert.doesNotMatch(stdout, /CREATE TABLE|innodb_flush_log_at_trx_commit|sync_binlog/);
});

test('an unreachable database stays 69, and the statement is printed all the same', async () => {
  const { status, stdout, stderr } = await check({ port: '1' });
  assert.equal(status, 69);
  assert.match(stderr, /^dbhttpd: database unreachable: .*\n$/);
  creationIn(stdout);
});

const noColumn = (name: string) => `the column ${name} is missing, or the account may not see it`;
const differences: Readonly<Record<string, readonly [change: string, ...faults: string[]]>> = {
  'another engine': ['alter table ledger engine=MyISAM', 'its engine is MyISAM, not InnoDB'],
  'a missing column': ['alter table ledger drop column attempt', noColumn('attempt')],
  'a BLOB': ['alter table ledger modify reply blob', 'the column reply is blob, not mediumblob'],
  'a reply that must be there': [
    'alter table ledger modify reply mediumblob not null',
    'the column reply is mediumblob NOT NULL, not mediumblob',
  ],
  'text for bytes': [
    'alter table ledger modify attempt char(16) not null',
    'the column attempt is char(16) NOT NULL, not binary(16) NOT NULL',
  ],
  'whole seconds': [
    'alter table ledger modify created datetime not null',
    'the column created is datetime NOT NULL, not datetime(3) NOT NULL',
  ],
  'a time that the server changes': [
    'alter table ledger modify created datetime(3) not null on update current_timestamp(3)',
    'the column created is datetime(3) NOT NULL on update current_timestamp(3), not datetime(3) NOT NULL',
  ],
  'no primary key': ['alter table ledger drop primary key', 'its primary key is not (id)'],
  'another primary key': [
    'alter table ledger drop primary key, add primary key (id, attempt)',
    'its primary key is not (id)',
  ],
  'a part of the key': [
    'alter table ledger drop primary key, add primary key (id(16))',
    'its primary key is not (id)',
  ],
  'no index': ['alter table ledger drop key created', 'it has no index on created'],
  'an index in which created is second': [
    'alter table ledger drop key created, add key created (request, created)',
    'it has no index on created',
  ],
  'a further unique index': [
    'alter table ledger add unique key once (request, attempt)',
    'it has a further unique index, once',
  ],
  'a column that must be given': [
    'alter table ledger add tenant int not null',
    "the column tenant is none of the gateway's, and has no default",
  ],
  'a trigger': [
    'create trigger watcher before delete on ledger for each row set @deleted = 1',
    'it has a trigger, watcher',
  ],
  'a view of its name': [
    'rename table ledger to behind; create view ledger as select * from behind; drop table behind',
    'it is no base table: VIEW',
  ],
};
for (const [what, [change, ...faults]] of Object.entries(differences)) {
  test(`a difference is told, and exits 78: ${what}`, async () => {
    await createTable(change);
    const finished = await check();
    assert.deepEqual(faultsIn(finished), faults);
    assert.equal(finished.status, 78);
  });
}

test('all differences are told at once', async () => {
  await createTable(
    'alter table ledger drop column reply, modify request binary(20) not null, drop key created',
  );
  assert.deepEqual(faultsIn(await check()), [
    'the column request is binary(20) NOT NULL, not binary(32) NOT NULL',
    noColumn('reply'),
    'it has no index on created',
  ]);
});

test('what only adds to the table is no fault', async () => {
  await createTable(
    `alter table ledger
      add note varchar(20), add tenant int not null default 0, add n bigint not null auto_increment, add key (n),
      add day date generated always as (date(created)) virtual, add key (day),
      modify created datetime(3) not null default current_timestamp(3), change id ID binary(32) not null`,
  );
  assert.deepEqual(faultsIn(await check()), []);
});

test('a table of the same name in another case is another table, where the server says so', async (t) => {
  const [row] = await database.query('select @@lower_case_table_names as folded');
  if (Number(row?.folded) !== 0) return t.skip('names have no case here');
  await createTable('create table LEDGER (id int)', 'drop table if exists Ledger');
  await database.query(
    'create trigger other_watcher before delete on LEDGER for each row set @deleted = 1',
  );
  assert.deepEqual(faultsIn(await check()), []);
  assert.equal((await check({ idempotency_table: 'Ledger' })).status, 78);
  await database.query('drop table LEDGER');
});

const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const lacks = [...rights.map((right) => [right]), ['SELECT', 'INSERT', 'UPDATE'], rights];
for (const missing of lacks) {
  test(`the GRANT that is missing is named, and is enough: ${missing}`, async () => {
    await createTable('insert into ledger values (1, 1, 1, 1, now())');
    const { account, ...login } = await createAccount();
    const held = rights.filter((right) => !missing.includes(right));
    if (held.length > 0) await database.query(`grant ${held} on ledger to ${account}`);
    const blind = await check(login);
    assert.equal(blind.status, 78);
    const grant = `GRANT ${missing.join(', ')} ON \`${database.name}\`.\`ledger\` TO ${account}`;
    assert.equal(faultsIn(blind).at(-1), `the account lacks rights: ${grant}`);
    assert.ok(faultsIn(blind).length <= 2, blind.stderr);
    await database.query(grant);
    const { status, stderr } = await check(login);
    assert.deepEqual([status, stderr], [0, '']);
    const [left] = await database.query('select count(*) as n from ledger');
    assert.equal(Number(left?.n), 1, 'nothing was written');
  });
}

test("the page's GRANT is enough, for a table of another database too", async () => {
  const shown = /^ {4}(GRANT .*) ON `world`\.`dbhttpd_keys` TO 'app'@'10\.0\.0\.%';$/m.exec(page);
  const { account, ...login } = await createAccount();
  const settings = { ...login, idempotency_table: JSON.stringify(`${other}.ledger`) };
  await database.query(creationIn((await check(settings)).stdout));
  await database.query(`${shown?.[1]} ON \`${other}\`.\`ledger\` TO ${account}`);
  const { status, stderr } = await check(settings);
  assert.deepEqual([status, stderr], [0, '']);
});

test('rights count that a role has, which init_sql chooses', async () => {
  await createTable();
  const { account, ...login } = await createAccount();
  const role = `led_${randomBytes(3).toString('hex')}`;
  await database.query(`create role ${role}`);
  try {
    await database.query(`grant select, insert, update, delete on ledger to ${role}`);
    await database.query(`grant ${role} to ${account}`);
    assert.equal((await check(login)).status, 78);
    const { status, stderr } = await check({ ...login, init_sql: `set role ${role}` });
    assert.deepEqual([status, stderr], [0, '']);
  } finally {
    await database.query(`drop role ${role}`);
  }
});

test('a server that forgets commits in a crash, or takes no writes, is a warning and no fault', async (t) => {
  if (!ownServerOnly(t)) return;
  const server = await startDatabase({ args: ['--log-bin', '--server-id=1'] });
  try {
    await server.query(creationIn((await check({}, server)).stdout));
    await server.query("create user led@'%' identified by 'Secret-4711'");
    await server.query(`grant select, insert, update, delete on ledger to led@'%'`);
    // It has no right to see triggers, which is another warning where sessions are reset by what is known.
    const login = { user: 'led', password: 'Secret-4711', session_reset: 'always' };
    const warningsWith = async (setting: string) => {
      await server.query(`set global ${setting}`);
      const finished = await check(login, server);
      assert.deepEqual([finished.status, finished.stderr], [0, ''], setting);
      return [...finished.stdout.matchAll(/^warning: (\w+(?: is \w+)?)/gm)].map(([, what]) => what);
    };
    await server.query('set global sync_binlog = 1');
    assert.deepEqual(await warningsWith('innodb_flush_log_at_trx_commit = 2'), [
      'innodb_flush_log_at_trx_commit is 2',
    ]);
    assert.deepEqual(await warningsWith('innodb_flush_log_at_trx_commit = 0'), [
      'innodb_flush_log_at_trx_commit is 0',
    ]);
    assert.deepEqual(await warningsWith('innodb_flush_log_at_trx_commit = 1'), []);
    assert.deepEqual(await warningsWith('sync_binlog = 0'), ['sync_binlog is 0']);
    assert.deepEqual(await warningsWith('sync_binlog = 1000'), ['sync_binlog is 1000']);
    assert.deepEqual(await warningsWith('sync_binlog = 1'), []);
    assert.deepEqual(await warningsWith('read_only = 1'), ['whether']);
  } finally {
    await server.stop();
  }
});

test('a server that tells only a part is told of, and one that falls silent is unreachable', async () => {
  const server = await startFakeMysql();
  const refuse = (asked: string) =>
    server.behave({
      answer: (client, statement) => {
        if (!statement.includes(asked)) return false;
        client.send([errorPacket(1193, 'no word of it')], 1);
        return true;
      },
    });
  try {
    refuse('@@global.sync_binlog');
    const undecided = await check({}, server.target);
    assert.match(undecided.stdout, /^warning: how durable .*: no word of it \(1193\)$/m);
    assert.deepEqual(faultsIn(undecided, '`d`.`ledger`'), [
      'it does not exist, or the account may not see it',
    ]);
    refuse('information_schema.STATISTICS');
    const refused = await check({}, server.target);
    assert.equal(refused.status, 78);
    assert.deepEqual(faultsIn(refused, '`d`.`ledger`'), [
      'the server does not tell what it is asked: no word of it (1193)',
    ]);
    server.behave({ answer: (_client, statement) => statement.startsWith('EXPLAIN') });
    const silent = await check({}, server.target);
    assert.equal(silent.status, 69);
    assert.match(silent.stderr, /no answer in time/);
  } finally {
    await server.stop();
  }
});

// --check prints the table of idempotency keys, says what differs from it, which rights are missing, and how durable the server is.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { createDaemon, type Finished, type Settings } from '../../support/daemon.ts';
import { type FakeMysql, startFakeMysql } from '../../support/database/fake-mysql.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { errorPacket } from '../../support/database/mysql-answer.ts';
import { keySettings } from '../../support/database/server-key.ts';
import { formatSection } from '../../support/ini-text.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const page = readFileSync('docs/guides/retries.md', 'utf8');

/** A database whose name must be quoted. */
let other: string;
/** The statement that creates the table `ledger`, as --check prints it. */
let creation: string;
const accounts: string[] = [];
// Before the one that stops the server: hooks run in the order of their registration.
after(async () => {
  for (const account of accounts) await database.query(`drop user ${account}`);
  await database.query(`drop database if exists \`${other}\``);
});
const database = useDatabase({
  prepare: async (own) => {
    other = `${own.name}-it's "x"`;
    await own.query(`create database \`${other}\``);
    creation = creationIn((await check({}, own)).stdout);
  },
});

type Server = FakeMysql['target'] & Partial<Pick<Database, 'serverKey'>>;

function reached(server: Server): Record<string, string> {
  const { name, host, port, user, password } = server;
  const login = { database: name, host, port: String(port), user, ...(password && { password }) };
  return { ...login, ...keySettings(server) };
}

/** Checks a section alone. */
async function check(settings: Settings = {}, server: Server = database): Promise<Finished> {
  const daemon = createDaemon({ ...reached(server), idempotency_table: 'ledger', ...settings });
  try {
    return await daemon.run(['--check']);
  } finally {
    await daemon.dispose();
  }
}

/** One of several sections: its keys beside those of its server. The default server is the shared one. */
type Section = Readonly<Record<string, string>>;
type Several = Readonly<Record<string, readonly [settings: Section, server?: Server]>>;

/** Checks several sections by one command, which takes a twentieth of the time of as many. */
async function checkAll(sections: Several): Promise<Finished> {
  const daemon = createDaemon(reached(database));
  try {
    for (const [name, [settings, server = database]] of Object.entries(sections)) {
      appendFileSync(daemon.configPath, formatSection(name, { ...reached(server), ...settings }));
    }
    return await daemon.run(['--check', '-m', Object.keys(sections).join(':')]);
  } finally {
    await daemon.dispose();
  }
}

/** The statement that the page's command cuts out of the output of `--check`. */
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

/** The statement that creates a table of this name, of this database. */
function creationOf(table: string, schema = database.name): string {
  const own = `\`${database.name}\`.\`ledger\``;
  assert.ok(creation.includes(own));
  return creation.replace(own, `\`${schema}\`.\`${table}\``);
}

/** The lines of stderr about each section and its table, by the section's name. */
function faultsBySection(finished: Finished): Map<string, string[]> {
  const all = new Map<string, string[]>();
  for (const line of finished.stderr.split('\n').filter((one) => one !== '')) {
    const known = /^dbhttpd: \[(\w+)\] (?:\S+: idempotency_table `[^`]*`\.`[^`]*`: )?(.*)$/;
    const [, section = '', fault] = known.exec(line) ?? [];
    assert.ok(fault !== undefined, line);
    all.set(section, [...(all.get(section) ?? []), fault]);
  }
  return all;
}

/** The lines of stderr about the table of a single section. */
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

/** An account that may enter the database and do nothing else. Its name needs quotes. */
async function createAccount(): Promise<{ user: string; password: string; account: string }> {
  const user = `o'led-${randomBytes(3).toString('hex')}`;
  const account = `'${user.replace("'", "''")}'@'%'`;
  await database.query(`create user ${account} identified by 'Secret-4711'`);
  accounts.push(account);
  await database.query(`create table if not exists ${database.name}.entrance (id int)`);
  await database.query(`grant select on ${database.name}.entrance to ${account}`);
  return { user, password: 'Secret-4711', account };
}

const isMissing = 'it does not exist, or the account may not see it';

test("a missing table is a fault, and the statement that --check prints creates it, in sql_mode '' and 'ansi_quotes,no_backslash_escapes'", async () => {
  const settings = ['keys', "it's a-ledger", `${other}.ledger`];
  const sections = Object.fromEntries(
    settings.map((table, at) => [`s${at}`, [{ idempotency_table: table }]] as const),
  );
  const missing = await checkAll(sections);
  assert.equal(missing.status, 78);
  assert.deepEqual(
    [...faultsBySection(missing)],
    Object.keys(sections).map((section) => [section, [isMissing]]),
  );
  const statementsIn = ({ stdout }: Finished) => stdout.match(/^CREATE TABLE [^;]*;$/gm) ?? [];
  const statements = statementsIn(missing);
  assert.equal(statements.length, settings.length);
  const connection = await database.connect({ database: 'information_schema' });
  for (const sqlMode of ['', 'ansi_quotes,no_backslash_escapes']) {
    await connection.query(`set sql_mode = '${sqlMode}'`);
    for (const statement of statements) await connection.query(statement);
    const there = await checkAll(sections);
    assert.deepEqual([there.status, there.stderr], [0, ''], sqlMode);
    assert.deepEqual(statementsIn(there), statements);
    await connection.query("set sql_mode = ''");
    for (const statement of statements) {
      await connection.query(`drop table ${/^CREATE TABLE (.*) \($/m.exec(statement)?.[1]}`);
    }
  }
});

test('the statement is on separate lines at the end, and is the one of the page', async () => {
  const { stdout } = await check({ idempotency_table: 'dbhttpd_keys' });
  const statement = creationIn(stdout);
  assert.ok(stdout.includes(`\n\n${statement}\n\nverdict: `), stdout);
  const shown = statement.replace(database.name, 'world').replaceAll(/^/gm, '    ');
  assert.ok(page.includes(`\n\n${shown}\n\n`), shown);
});

test('without idempotency_table it prints no statement, and no warning about durability', async () => {
  const { status, stdout } = await check({ idempotency_table: null });
  assert.equal(status, 0);
  assert.doesNotMatch(stdout, /CREATE TABLE|innodb_flush_log_at_trx_commit|sync_binlog/);
});

test('a section that keeps keys for a shorter time than another one is warned of', async () => {
  await database.query(`${creationOf('shared')} ${creationOf('old')}
    insert into old values (repeat('a', 32), repeat('b', 32), repeat('c', 16), null, utc_timestamp() - interval 2 hour)`);
  const { stdout } = await checkAll({
    long: [{ idempotency_table: 'shared', idempotency_keep: '2h' }],
    short: [{ idempotency_table: 'shared', idempotency_keep: '1h' }],
    aged: [{ idempotency_table: 'old', idempotency_keep: '1h' }],
    young: [{ idempotency_table: 'old', idempotency_keep: '3h' }],
  });
  const warningsOf = (section: string) => {
    const part =
      stdout.split(/^(?=\[)/m).findLast((text) => text.startsWith(`[${section}] `)) ?? '';
    return part.split('\n').filter((line) => /^warning: idempotency_(keep|table)/.test(line));
  };
  assert.deepEqual(warningsOf('long'), []);
  assert.match(warningsOf('short').join(), /idempotency_keep is shorter than that of \[long\]/);
  assert.match(warningsOf('aged').join(), /has keys that are older than idempotency_keep/);
  assert.deepEqual(warningsOf('young'), []);
});

test('an unreachable database still exits 69, and the statement is printed all the same', async () => {
  const { status, stdout, stderr } = await check({ port: '1' });
  assert.equal(status, 69);
  assert.match(stderr, /^dbhttpd: database unreachable: .*\n$/);
  creationIn(stdout);
});

const noColumn = (name: string) => `the column ${name} is missing, or the account may not see it`;
/** Changes of the table LEDGER, and what --check reports about each. */
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
    'it is not a base table: VIEW',
  ],
  'several at once': [
    'alter table ledger drop column reply, modify request binary(20) not null, drop key created',
    'the column request is binary(20) NOT NULL, not binary(32) NOT NULL',
    noColumn('reply'),
    'it has no index on created',
  ],
};

/** The part that only adds to the table. */
const addition = `alter table ledger
  add note varchar(20), add tenant int not null default 0, add n bigint not null auto_increment, add key (n),
  add day date generated always as (date(created)) virtual, add key (day),
  modify created datetime(3) not null default current_timestamp(3), change id ID binary(32) not null`;

describe('differences', () => {
  let reported: Map<string, string[]>;
  const names = Object.keys(differences);
  before(async () => {
    const sections: Record<string, Several[string]> = {};
    const changes = [...names.map((what) => differences[what]?.[0] ?? ''), addition];
    for (const [at, change] of changes.entries()) {
      const table = `ledger_${at}`;
      await database.query(creationOf(table));
      await database.query(change.replaceAll('ledger', table).replaceAll('behind', `behind_${at}`));
      sections[`s${at}`] = [{ idempotency_table: table }];
    }
    const finished = await checkAll(sections);
    assert.equal(finished.status, 78);
    reported = faultsBySection(finished);
  });

  for (const [at, what] of names.entries()) {
    test(`a difference is reported, and exits 78: ${what}`, () => {
      const [, ...faults] = differences[what] ?? [];
      assert.deepEqual(reported.get(`s${at}`), faults);
    });
  }

  test('an addition to the table is not a fault', () => {
    assert.equal(reported.get(`s${names.length}`), undefined);
  });
});

test('a difference alone exits 78', async () => {
  await database.query(creationOf('lonely'));
  await database.query('alter table lonely drop key created');
  const finished = await check({ idempotency_table: 'lonely' });
  assert.equal(finished.status, 78);
  const quoted = `\`${database.name}\`.\`lonely\``;
  assert.deepEqual(faultsIn(finished, quoted), ['it has no index on created']);
});

test('a table of the same name in another case is another table, if the server distinguishes case', async (t) => {
  const [row] = await database.query('select @@lower_case_table_names as folded');
  if (Number(row?.folded) !== 0) return t.skip('names have no case here');
  await database.query(creationOf('cased'));
  await database.query('create table CASED (id int)');
  await database.query(
    'create trigger other_watcher before delete on CASED for each row set @deleted = 1',
  );
  const finished = await checkAll({
    same: [{ idempotency_table: 'cased' }],
    another: [{ idempotency_table: 'Cased' }],
  });
  assert.equal(finished.status, 78);
  assert.deepEqual([...faultsBySection(finished)], [['another', [isMissing]]]);
});

const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const lacks = [...rights.map((right) => [right]), ['SELECT', 'INSERT', 'UPDATE'], rights];
describe('rights', () => {
  const grants: string[] = [];
  let blind: Map<string, string[]>;
  let seeing: Map<string, string[]>;
  before(async () => {
    await database.query(creationOf('guarded'));
    await database.query('insert into guarded values (1, 1, 1, 1, now())');
    const sections: Record<string, Several[string]> = {};
    for (const [at, missing] of lacks.entries()) {
      const { account, ...login } = await createAccount();
      const held = rights.filter((right) => !missing.includes(right));
      if (held.length > 0) await database.query(`grant ${held} on guarded to ${account}`);
      grants.push(`GRANT ${missing.join(', ')} ON \`${database.name}\`.\`guarded\` TO ${account}`);
      sections[`s${at}`] = [{ ...login, idempotency_table: 'guarded' }];
    }
    blind = faultsBySection(await checkAll(sections));
    for (const grant of grants) await database.query(grant);
    seeing = faultsBySection(await checkAll(sections));
  });

  for (const [at, missing] of lacks.entries()) {
    test(`the GRANT that is missing is named, and is enough: ${missing}`, () => {
      const faults = blind.get(`s${at}`) ?? [];
      assert.equal(faults.at(-1), `the account lacks rights: ${grants[at]}`);
      assert.ok(faults.length <= 2, faults.join('\n'));
      assert.equal(seeing.get(`s${at}`), undefined);
    });
  }

  test('looking for rights writes nothing', async () => {
    const [left] = await database.query('select count(*) as n from guarded');
    assert.equal(Number(left?.n), 1);
  });
});

test("the page's GRANT is enough, for a table of another database too", async () => {
  const shown = /^ {4}(GRANT .*) ON `world`\.`dbhttpd_keys` TO 'app'@'10\.0\.0\.%';$/m.exec(page);
  const { account, ...login } = await createAccount();
  await database.query(creationOf('ledger', other));
  await database.query(`${shown?.[1]} ON \`${other}\`.\`ledger\` TO ${account}`);
  const { status, stderr } = await checkAll({
    own: [{ ...login, idempotency_table: `${other}.ledger` }],
  });
  assert.deepEqual([status, stderr], [0, '']);
});

test('rights count that a role has, which init_sql chooses', async () => {
  await database.query(creationOf('by_role'));
  const { account, ...login } = await createAccount();
  const role = `led_${randomBytes(3).toString('hex')}`;
  await database.query(`create role ${role}`);
  try {
    await database.query(`grant select, insert, update, delete on by_role to ${role}`);
    await database.query(`grant ${role} to ${account}`);
    const keys = { ...login, idempotency_table: 'by_role' };
    const finished = await checkAll({
      without: [keys],
      chosen: [{ ...keys, init_sql: `set role ${role}` }],
    });
    assert.equal(finished.status, 78);
    assert.deepEqual([...faultsBySection(finished).keys()], ['without']);
  } finally {
    await database.query(`drop role ${role}`);
  }
});

test('a server that forgets commits in a crash, or takes no writes, is a warning and no fault', async (t) => {
  if (!ownServerOnly(t)) return;
  const server = await startDatabase({ args: ['--log-bin', '--server-id=1'] });
  t.after(server.stop);
  await server.query(creationOf('ledger', server.name));
  await server.query("create user led@'%' identified by 'Secret-4711'");
  await server.query(`grant select, insert, update, delete on ledger to led@'%'`);
  // It has no right to see triggers, which is another warning where sessions are reset by what is known.
  const login = { user: 'led', password: 'Secret-4711', session_reset: 'always' };
  const warningsWith = async (...settings: readonly string[]) => {
    for (const setting of settings) await server.query(`set global ${setting}`);
    const finished = await check(login, server);
    assert.deepEqual([finished.status, finished.stderr], [0, ''], settings.join());
    const warnings = finished.stdout.matchAll(/^warning: (\w+(?: (?:is|not) \w+)?)/gm);
    return [...warnings].map(([, what]) => what);
  };
  const [flush, sync] = ['innodb_flush_log_at_trx_commit', 'sync_binlog'];
  for (const [flushed, synced] of [
    [2, 1000],
    [0, 0],
  ]) {
    assert.deepEqual(await warningsWith(`${flush} = ${flushed}`, `${sync} = ${synced}`), [
      `${flush} is ${flushed}`,
      `${sync} is ${synced}`,
    ]);
  }
  assert.deepEqual(await warningsWith(`${flush} = 1`, `${sync} = 1`), []);
  assert.deepEqual(await warningsWith('read_only = 1'), ['could not find']);
});

test('a server that reports only a part is named, and one that falls silent is unreachable', async (t) => {
  const start = async (answer: FakeAnswer) => {
    const server = await startFakeMysql();
    t.after(server.stop);
    server.behave({ answer });
    return server.target;
  };
  const refuse =
    (asked: string): FakeAnswer =>
    (client, statement) => {
      if (!statement.includes(asked)) return false;
      client.send([errorPacket(1193, 'no word of it')], 1);
      return true;
    };
  const keys = { idempotency_table: 'ledger' };
  const finished = await checkAll({
    undecided: [keys, await start(refuse('@@global.sync_binlog'))],
    refused: [keys, await start(refuse('information_schema.STATISTICS'))],
    silent: [keys, await start((_client, statement) => statement.startsWith('EXPLAIN'))],
  });
  assert.match(
    finished.stdout,
    /^warning: could not find out how durable .*: no word of it \(1193\)$/m,
  );
  const faults = faultsBySection(finished);
  assert.deepEqual(faults.get('undecided'), [isMissing]);
  assert.deepEqual(faults.get('refused'), ['the server refused a query: no word of it (1193)']);
  assert.match(
    finished.stderr,
    /^dbhttpd: \[silent\] .*database unreachable: .*no answer in time/m,
  );
});

type FakeAnswer = NonNullable<Parameters<FakeMysql['behave']>[0]['answer']>;

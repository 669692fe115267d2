// --check reports everything that a start would meet, and starts nothing.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { createDaemon, type Daemon, runCommand, type Settings } from '../../support/daemon.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { keySettings } from '../../support/database/server-key.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());
const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function reached(): Settings {
  const { name, host, port, user, password } = database;
  const login = { database: name, host, port: String(port), user, password: password || null };
  return { ...login, ...keySettings(database) };
}

function create(settings: Settings = {}): Daemon {
  const daemon = createDaemon({ ...reached(), ...settings });
  daemons.push(daemon);
  return daemon;
}

test('prints settings, paths, server and connection budget, secrets masked, and exits 0', async () => {
  const daemon = create({ workers: '2', pool: '3', token: 'hunter2' });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, new RegExp(`pidfile\\s+= ${daemon.pidfile}$`, 'm'));
  assert.match(stdout, new RegExp(`log\\s+= ${daemon.log}$`, 'm'));
  assert.match(stdout, /^server: (MariaDB|MySQL) \d+\.\d+/m);
  assert.match(
    stdout,
    /^connections: 2 workers x \(3 pool \+ 1 control \+ 1 probe\) = 10 of max_connections \d+$/m,
  );
  assert.match(stdout, /^restart: up to 8 more while an old instance .* = 18$/m);
  assert.ok(!stdout.includes('hunter2'));
  assert.deepEqual(readdirSync(daemon.directory), ['dbhttpd.ini']);
});

test('ends in one line of verdict, whether or not there are faults', async () => {
  const lastLine = (stdout: string) => stdout.trimEnd().split('\n').at(-1);
  const sound = await create().run(['--check']);
  assert.match(lastLine(sound.stdout) ?? '', /^verdict: ok \(no faults, \d+ warnings?\)$/);
  const faulty = await create({ port: '1', pool: '0' }).run(['--check']);
  assert.equal(faulty.status, 78);
  assert.equal(lastLine(faulty.stdout), 'verdict: not ok (1 fault, no warnings), exit 78');
});

/** The object of --check --json, as far as the tests read it. */
type Printed = {
  readonly ok: boolean;
  readonly faults: readonly Readonly<Record<string, unknown>>[];
  readonly settings: Readonly<Record<string, Readonly<Record<string, string | null>>>>;
  readonly server: readonly { readonly flavour: string; readonly version: string }[];
  readonly connections: readonly { readonly needed: number; readonly restart: number }[];
};

test('--json prints settings with masked secrets, server and connections as one object', async () => {
  const daemon = create({ workers: '2', pool: '3', token: 'hunter2' });
  const { status, stdout, stderr } = await daemon.run(['--check', '--json']);
  assert.deepEqual([status, stderr, stdout.indexOf('\n')], [0, '', stdout.length - 1]);
  const printed = JSON.parse(stdout) as Printed;
  const keys = ['ok', 'faults', 'warnings', 'settings', 'server', 'connections'];
  assert.deepEqual(Object.keys(printed), keys);
  assert.deepEqual([printed.ok, printed.faults], [true, []]);
  const { database: name, pidfile, socket } = printed.settings.world ?? {};
  assert.deepEqual([name, pidfile, socket], [database.name, daemon.pidfile, null]);
  assert.match(printed.server[0]?.flavour ?? '', /^(MariaDB|MySQL)$/);
  assert.match(printed.server[0]?.version ?? '', /^\d+\.\d+/);
  const [connections] = printed.connections;
  assert.deepEqual([connections?.needed, connections?.restart], [10, 18]);
  assert.ok(!stdout.includes('hunter2'));
});

test('--json prints every fault with its place, nothing on stderr, and exits as without it', async () => {
  const daemon = create({ pool: '0', workers: 'many' });
  const { status, stdout, stderr } = await daemon.run(['--check', '--json']);
  assert.deepEqual([status, stderr], [78, '']);
  const { ok, faults } = JSON.parse(stdout) as Printed;
  assert.equal(ok, false);
  assert.deepEqual(faults.map(({ key }) => key).sort(), ['pool', 'workers']);
  for (const fault of faults) {
    assert.deepEqual(Object.keys(fault), ['file', 'section', 'key', 'line', 'message']);
    assert.deepEqual([fault.file, fault.section], [daemon.configPath, 'world']);
  }
});

test('warns when the server does not admit all connections', async () => {
  const { status, stdout } = await create({ workers: '256', pool: '1000' }).run(['--check']);
  assert.equal(status, 0);
  assert.match(stdout, /^warning: the server does not admit that many connections/m);
});

test('warns of an account that reaches beyond its transactions', async () => {
  const { status, stdout } = await create({}).run(['--check']);
  assert.equal(status, 0);
  assert.match(stdout, /^warning: the account has (ALL PRIVILEGES|FILE) on \*\.\*/m);
});

test('lists an unreachable database together with every other obstacle', async () => {
  const daemon = create({
    port: '1',
    pidfile: '/nowhere/x.pid',
    listen: '192.0.2.1:1',
    insecure: 'on',
  });
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 73);
  assert.match(stderr, /cannot create the pidfile \/nowhere\/x\.pid: ENOENT/);
  assert.match(stderr, /cannot listen on 192\.0\.2\.1:1: EADDRNOTAVAIL/);
  assert.match(stderr, /database unreachable: 127\.0\.0\.1:\d+: ECONNREFUSED/);
});

test('a pidfile that is a directory and a log that cannot be reached exit 73, as a start does, without a stack trace', async () => {
  const daemon = create();
  const loop = join(daemon.directory, 'loop');
  symlinkSync(loop, loop);
  const settled = [
    { pidfile: daemon.directory },
    { pidfile: join(loop, 'x.pid') },
    { log: join(loop, 'x.log') },
  ];
  for (const settings of settled) {
    daemon.configure({ ...reached(), ...settings });
    const { status, stderr } = await daemon.run(['--check']);
    assert.equal(status, 73, stderr);
    assert.match(
      stderr,
      /^dbhttpd: .*cannot create the (pidfile .*: (is a directory|ELOOP)|log .*: ELOOP)$/m,
    );
    assert.equal((await daemon.start()).status, 73);
  }
});

test('a log and a lock file that an earlier start has left, and this one cannot open, exit 73, as a start does', async (t) => {
  const runner = withoutRootsAccess();
  if (typeof runner === 'string') return t.skip(runner);
  const daemon = create();
  const args = ['-c', daemon.configPath, '-s', 'world'];
  const { pidfile, log } = daemon;
  for (const [path, message] of [
    [log, `cannot create the log ${log}: EACCES`],
    [
      `${pidfile}.lock`,
      `cannot create the pidfile ${pidfile}: cannot open ${pidfile}.lock: EACCES`,
    ],
  ] as const) {
    writeFileSync(path, '', { mode: 0o400 });
    const { status, stderr } = await runCommand(['--check', ...args], {}, runner);
    assert.equal(status, 73, stderr);
    assert.ok(stderr.endsWith(`: ${message}\n`), stderr);
    assert.equal((await runCommand(args, {}, runner)).status, 73);
    rmSync(path);
  }
  // Only outcomes of earlier COMMITs are lost with it.
  const commits = `${pidfile}.commits`;
  writeFileSync(commits, '', { mode: 0o400 });
  const { status, stdout } = await runCommand(['--check', ...args], {}, runner);
  assert.equal(status, 0);
  const warning = `warning: the outcome of COMMITs is not remembered beyond an instance: cannot open ${commits}: EACCES`;
  assert.ok(stdout.split('\n').includes(warning), stdout);
});

test('a log in a directory that takes no new files is no fault if the log is there', async (t) => {
  const runner = withoutRootsAccess();
  if (typeof runner === 'string') return t.skip(runner);
  const daemon = create();
  const logs = join(daemon.directory, 'logs');
  mkdirSync(logs);
  writeFileSync(join(logs, 'world.log'), '', { mode: 0o640 });
  daemon.configure({ ...reached(), log: join(logs, 'world.log') });
  chmodSync(logs, 0o500);
  const args = ['--check', '-c', daemon.configPath, '-s', 'world'];
  const { status, stderr } = await runCommand(args, {}, runner);
  chmodSync(logs, 0o700);
  assert.deepEqual([status, stderr], [0, '']);
});

/** Runs node without root's way past the permissions of files; or why that cannot be done. */
function withoutRootsAccess(): readonly [string, ...string[]] | string {
  if (process.getuid?.() !== 0) return [process.execPath];
  const before = ['--bounding-set', '-dac_override,-dac_read_search'];
  const { status, stderr } = spawnSync('setpriv', [...before, 'true'], { encoding: 'utf8' });
  if (status === 0) return ['setpriv', ...before, process.execPath];
  return `root passes all permissions, and setpriv does not limit it: ${stderr || 'not installed'}`;
}

test('a fault of the command itself is one line and no stack trace', async () => {
  const fault = 'data:text/javascript,process.getuid=()=>{throw%20new%20Error(%27no%20user%27)}';
  const { status, stderr } = await create().run(['--check'], { NODE_OPTIONS: `--import=${fault}` });
  assert.deepEqual([status, stderr], [69, 'dbhttpd: the command failed: no user\n']);
});

test('an address that systemd holds for the gateway is a warning, and one that another program holds exits 69', async (t) => {
  const held = createServer();
  t.after(() => held.close());
  await new Promise<void>((resolve) => held.listen(0, '127.0.0.1', resolve));
  const { port } = held.address() as AddressInfo;
  const daemon = create({ listen: `127.0.0.1:${port}` });
  // Systemd does not run here. Its own command exits with 0 for an active unit.
  const systemctl = join(daemon.directory, 'systemctl');
  const checkBeside = (active: string) => {
    writeFileSync(systemctl, `#!/bin/sh\n[ "$*" = '--quiet is-active ${active}' ]\n`, {
      mode: 0o755,
    });
    return daemon.run(['--check'], { PATH: `${daemon.directory}:${process.env.PATH}` });
  };
  const own = await checkBeside('dbhttpd@world.socket');
  assert.deepEqual([own.status, own.stderr], [0, '']);
  const warning = 'warning: dbhttpd@world.socket holds the socket: only its service can start';
  assert.ok(own.stdout.split('\n').includes(warning), own.stdout);
  const foreign = [await checkBeside('dbhttpd@other.socket'), await daemon.run(['--check'])];
  for (const { status, stderr } of foreign) {
    assert.equal(status, 69);
    assert.match(stderr, /cannot listen on \S+: EADDRINUSE\n$/);
  }
});

test('root may check what another user starts: files of that user are a warning', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can give a file to another user');
  const daemon = create();
  const { pidfile, log } = daemon;
  for (const path of [`${pidfile}.lock`, `${pidfile}.commits`, log]) {
    writeFileSync(path, '', { mode: 0o600 });
    chownSync(path, 1234, 1234);
  }
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.deepEqual([status, stderr], [0, '']);
  const lines = stdout.split('\n').filter((line) => line.includes('belongs to'));
  const warnings = [`${pidfile}.lock`, log].map(
    (path) => `warning: ${path} belongs to user 1234: only that user can start the gateway`,
  );
  assert.deepEqual(lines, warnings);
});

test('an unreachable database alone exits 69, and its account is not printed', async () => {
  const { status, stderr } = await create({ port: '1', user: 'hunter2' }).run(['--check']);
  assert.equal(status, 69);
  assert.ok(!stderr.includes('hunter2'));
});

test('reports that the instance is running, and does not disturb it', async () => {
  const daemon = create();
  assert.equal((await daemon.start()).status, 0);
  const { status, stdout } = await daemon.run(['--check']);
  assert.equal(status, 0);
  assert.match(stdout, /^instance: it is running$/m);
  assert.ok(readdirSync(daemon.directory).includes(join('world.pid')));
});

test('reports that the server refuses init_sql, and exits 78', async () => {
  const { status, stderr } = await create({ init_sql: '"set nonsense"' }).run(['--check']);
  assert.equal(status, 78);
  assert.match(stderr, /init_sql is refused by the server: .*syntax.* \(\d+\)$/m);
  assert.equal(
    (await create({ init_sql: "\"set time_zone='+00:00'; set sql_mode=''\"" }).run(['--check']))
      .status,
    0,
  );
});

test('reports that init_sql changes the character set, and exits 78', async () => {
  const check = (sql: string) => create({ init_sql: `"${sql}"` }).run(['--check']);
  for (const [sql, left] of [
    ['set names latin1', 'character_set_client = latin1'],
    ['set character_set_connection = latin1', 'character_set_connection = latin1'],
    ['set character_set_results = latin1', 'character_set_results = latin1'],
  ] as const) {
    const { status, stderr } = await check(sql);
    assert.equal(status, 78, sql);
    assert.match(stderr, /init_sql changes the character set of the session/, sql);
    assert.ok(stderr.includes(`(${left})`), sql);
  }
  // Without a character set of results, each column comes in its own, which the gateway converts.
  for (const sql of ['set names utf8mb4 collate utf8mb4_bin', 'set character_set_results = null']) {
    const { status, stderr } = await check(sql);
    assert.deepEqual([status, stderr], [0, ''], sql);
  }
});

test('names the missing grants that leave views and triggers unknown', async () => {
  await database.query('create table seen (id int)');
  await database.query('create view hidden as select id from seen');
  const { status, stdout } = await create().run(['--check']);
  assert.equal(status, 0);
  assert.doesNotMatch(stdout, /cannot see/);
  const account = { user: 'blind', password: 'Secret-4711' };
  await database.query("create user blind@'%' identified by 'Secret-4711'");
  try {
    await database.query(`grant select, insert on ${database.name}.* to blind@'%'`);
    const blind = await create(account).run(['--check']);
    assert.equal(blind.status, 0);
    const to = `ON \`${database.name}\`.* TO 'blind'@'%'`;
    assert.ok(blind.stdout.includes(`GRANT TRIGGER ${to}`), blind.stdout);
    assert.ok(blind.stdout.includes(`GRANT SHOW VIEW ${to} (hidden)`), blind.stdout);
    const always = await create({ ...account, session_reset: 'always' }).run(['--check']);
    assert.doesNotMatch(always.stdout, /cannot see/);
  } finally {
    await database.query("drop user blind@'%'");
  }
});

// --check reports for every server of every section what it is, whether it can be reached, and which settings it must allow.
import assert from 'node:assert/strict';
import { appendFileSync, chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import {
  createDaemon,
  type Daemon,
  type Finished,
  runCommand,
  type Settings,
} from '../../support/daemon.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { formatSection } from '../../support/ini-text.ts';

let database: Database;
let server: string;
before(async () => {
  database = await startDatabase();
  server = `${database.host}:${database.port}`;
});
after(() => database.stop());
const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

/** No server listens there. */
const closed = '127.0.0.1:1';

function account() {
  const { name, user, password } = database;
  return { database: name, user, ...(password === '' ? {} : { password }) };
}

/** The section `world`, and others behind it in the same file. */
function create(settings: Settings, others: Readonly<Record<string, Record<string, string>>> = {}) {
  const daemon = createDaemon({ ...account(), workers: '2', pool: '3', ...settings });
  daemons.push(daemon);
  for (const [name, keys] of Object.entries(others)) {
    appendFileSync(daemon.configPath, formatSection(name, keys));
  }
  return daemon;
}

function check(daemon: Daemon, ...args: readonly string[]): Promise<Finished> {
  return runCommand(['--check', '-c', daemon.configPath, ...args]);
}

test('a server that cannot be reached is a warning if another one can, else 69', async () => {
  const daemon = create({ host: `${closed}, ${server}` });
  const { status, stdout, stderr } = await check(daemon, '-s', 'world');
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout, new RegExp(`^  host\\s+= ${closed}, ${server}$`, 'm'));
  const unreachable = `database unreachable: ${closed}: ECONNREFUSED`;
  assert.ok(stdout.includes(`\n\n[world] ${closed}\nwarning: ${unreachable}\n`), stdout);
  const [, found = ''] = stdout.split(`\n\n[world] ${server}\n`);
  assert.match(
    found,
    /^server: (MariaDB|MySQL) \d+\.\d+.*\nrole: primary .*\nreplicates: .*\nconnections: 2 workers x .* = 10 of/,
  );

  const none = await check(create({ host: `${closed}, 127.0.0.1:2` }), '-s', 'world');
  assert.equal(none.status, 69);
  assert.equal(
    none.stderr,
    `dbhttpd: [world] ${unreachable}\n` +
      'dbhttpd: [world] database unreachable: 127.0.0.1:2: ECONNREFUSED\n',
  );
});

test('a memory of the primary that cannot be kept is a warning, where there are several servers', async () => {
  const settings = { host: `${closed}, ${server}` };
  const daemon = create(settings);
  const kept = await check(daemon, '-s', 'world');
  assert.match(kept.stdout, new RegExp(`^  state_dir\\s+= ${daemon.stateDir}$`, 'm'));
  assert.doesNotMatch(kept.stdout, /cannot keep/);
  const below = join(daemon.configPath, 'state');
  daemon.configure({ ...account(), ...settings, state_dir: below });
  const { status, stdout } = await check(daemon, '-s', 'world');
  assert.equal(status, 0);
  const warning = `warning: cannot keep the last primary in ${below}/world.primary: ENOTDIR`;
  assert.ok(stdout.includes(`\n${warning}\n`), stdout);
  daemon.configure({ ...account(), host: server, state_dir: below });
  assert.doesNotMatch((await check(daemon, '-s', 'world')).stdout, /cannot keep/);
});

test('connections to a server are those of all gateways and of all sections that share it', async () => {
  const beside = { ...account(), host: server, pool: '5' };
  const elsewhere = { ...account(), host: closed };
  const daemon = create(
    { host: server, gateways: '3' },
    { city: beside, listed: { host: closed }, gone: elsewhere },
  );
  const { status, stdout, stderr } = await check(daemon, '-s', 'world:listed', '-m', 'city:gone');
  assert.equal(status, 69);
  assert.equal(stderr, `dbhttpd: [gone] database unreachable: ${closed}: ECONNREFUSED\n`);
  for (const name of ['world', 'city', 'gone']) {
    assert.ok(stdout.includes(`[${name}] of ${daemon.configPath}\n`), stdout);
  }
  const each = (pool: number, name: string) =>
    `3 gateways x 2 workers x (${pool} pool + 1 control + 1 probe) [${name}]`;
  for (const name of ['world', 'city']) {
    const [, found = ''] = stdout.split(`\n\n[${name}] ${server}\n`);
    const lines = found.split('\n');
    const at = lines.findIndex((line) => line.startsWith('connections: '));
    const [connections = '', restart = ''] = lines.slice(at);
    const sum = `connections: ${each(3, 'world')} + ${each(5, 'city')} = 72 of max_connections `;
    assert.ok(connections.startsWith(sum), stdout);
    assert.match(restart, /^restart: up to 22 more .* = 94$/);
  }
});

test('faults of all sections are reported together, and a start fails with the same ones', async () => {
  const daemon = create(
    { host: server, workers: '0' },
    { listed: { host: 'x', user: 'other' }, city: { host: 'h:99999' } },
  );
  const args = ['-s', 'world:listed', '-m', 'city'];
  const faults = [
    /\[world\] workers \(line \d+\): must be from 1 to 256/,
    /\[listed\] user: differs from that of \[world\]/,
    /\[city\] host \(line \d+\): item 1 \(h:99999\) must have a port/,
    /\[city\] database: is required/,
    /\[city\] user: is required/,
  ];
  const checked = await check(daemon, ...args);
  const verdict = 'verdict: not ok (5 faults, no warnings), exit 78\n';
  assert.deepEqual([checked.status, checked.stdout], [78, verdict]);
  const started = await runCommand(['-c', daemon.configPath, ...args]);
  assert.deepEqual(started, { status: 78, stdout: '', stderr: '' });
  for (const reported of [checked.stderr, daemon.readLog()]) {
    const lines = reported.trim().split('\n');
    assert.equal(lines.length, faults.length, reported);
    for (const [index, fault] of faults.entries()) assert.match(lines[index] ?? '', fault);
  }
});

test('init_sql that one server refuses is a fault that names section and server', async () => {
  const daemon = create({ host: `${server}, ${closed}`, init_sql: '"set nonsense"' });
  const { status, stderr } = await check(daemon, '-s', 'world');
  assert.equal(status, 78);
  assert.ok(stderr.startsWith(`dbhttpd: [world] ${server}: init_sql is refused by`), stderr);
});

test('the table of idempotency keys is looked for on the first server that takes writes', async (t) => {
  if (!ownServerOnly(t)) return;
  const replica = await startDatabase({ own: true, args: ['--read-only=1'] });
  const { name, user, password } = database;
  const frozen = `${replica.host}:${replica.port}`;
  try {
    await replica.query(`create database if not exists \`${name}\``);
    await replica.query(`create user if not exists '${user}'@'%' identified by '${password}'`);
    await replica.query(`grant all on *.* to '${user}'@'%'`);
    const settings = { idempotency_table: 'missing' };
    const daemon = create({ host: `${frozen}, ${server}`, ...settings });
    const { status, stderr } = await check(daemon, '-s', 'world');
    assert.equal(status, 78, stderr);
    const table = `idempotency_table \`${name}\`.\`missing\``;
    assert.match(stderr, /^dbhttpd: .*: it does not exist, or the account may not see it\n$/);
    assert.ok(stderr.startsWith(`dbhttpd: [world] ${server}: ${table}: `), stderr);
  } finally {
    await replica.stop();
  }
});

test('an instance of several sections is named by the first, and SIGHUP reads the files of all', async () => {
  const daemon = create({ host: server, token: 't' });
  const secret = join(daemon.directory, 'secret');
  writeFileSync(secret, 'x', { mode: 0o600 });
  const beside = { database: 'd', user: 'u', host: closed, password_file: secret };
  appendFileSync(daemon.configPath, formatSection('city', { ...beside, listen: '*:1', log: '/x' }));
  const args = ['-c', daemon.configPath, '-s', 'world', '-m', 'city'];
  const started = await runCommand(args);
  assert.equal(started.status, 0, daemon.readLog());
  assert.ok(daemon.pid() > 0);
  const seen = () => daemon.readLog();
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('it is read again', () =>
    /credentials read again files=1 faults=0/.test(seen()),
  );
  chmodSync(secret, 0o644);
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('the fault is reported', () =>
    /credentials read again files=1 faults=1/.test(seen()),
  );
  assert.match(seen(), /cannot be used.* section=city key=password_file problem="is open to/);
});

// SIGHUP alone has certificates, keys, tokens and password read anew, for all workers; nothing else ever does.
// Must not know how workers are told.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import { connect } from 'node:tls';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { gone } from '../../support/processes.ts';
import {
  formatRequest,
  openAtEach,
  type WorkerConnection,
} from '../../support/worker-connections.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-renewal-'));
after(() => rmSync(directory, { recursive: true }));
const authority = createAuthority(directory);
const first = authority.issue('first');
const second = authority.issue('second');

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

async function start(settings: Settings): Promise<Daemon> {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  return daemon;
}

const withinMs = 1000;

/** Sends HUP and waits until the supervisor has read everything. */
async function renew(daemon: Daemon): Promise<void> {
  const count = () => daemon.readLog().match(/credentials read anew/g)?.length ?? 0;
  const before = count();
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('it is read anew', () => count() > before, { timeoutMs: withinMs });
}

async function replaceWorkers(daemon: Daemon, most = Number.POSITIVE_INFINITY): Promise<void> {
  const workers = daemon.workers();
  const killed = workers.slice(0, most);
  for (const worker of killed) process.kill(worker, 'SIGKILL');
  await Promise.all(killed.map((worker) => gone(worker)));
  // A worker takes its title in the turn in which it begins to listen.
  const isReady = (pid: number) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('dbhttpd: worker');
  await eventually('others listen', () => {
    const others = daemon.workers();
    return others.length === workers.length && others.every(isReady);
  });
}

const fingerprintOf = ({ cert }: PairFiles) =>
  new X509Certificate(readFileSync(cert)).fingerprint256;

function shownCertificate(address: string): Promise<string> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256 ?? '');
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/** What many connections in a row are shown: with two workers, both are among them. */
async function shownByAll(daemon: Daemon): Promise<readonly string[]> {
  const shown = await Promise.all(
    Array.from({ length: 40 }, () => shownCertificate(daemon.address())),
  );
  return [...new Set(shown)];
}

test('a certificate on disk is shown after SIGHUP, by all workers, and not before, by a new one either', async () => {
  const pair = { cert: join(directory, 'used.pem'), key: join(directory, 'used.key') };
  const install = ({ cert, key }: PairFiles) => {
    copyFileSync(cert, pair.cert);
    copyFileSync(key, pair.key);
  };
  install(first);
  const daemon = await start({ workers: '2', https_cert: pair.cert, https_key: pair.key });
  assert.deepEqual(await shownByAll(daemon), [fingerprintOf(first)]);
  install(second);
  await replaceWorkers(daemon);
  assert.deepEqual(await shownByAll(daemon), [fingerprintOf(first)]);
  await renew(daemon);
  await eventually(
    'all show the new one',
    async () => {
      assert.deepEqual(await shownByAll(daemon), [fingerprintOf(second)]);
      return true;
    },
    { timeoutMs: withinMs },
  );
  await replaceWorkers(daemon);
  assert.deepEqual(await shownByAll(daemon), [fingerprintOf(second)]);

  // Half of a renewal: the new certificate with the old key.
  copyFileSync(first.cert, pair.cert);
  await renew(daemon);
  assert.match(daemon.readLog(), /error .*cannot be used.* key=https_cert problem="and its key do/);
  assert.deepEqual(await shownByAll(daemon), [fingerprintOf(second)]);
  // A key that others may read, or that is gone, is none either.
  install(first);
  chmodSync(pair.key, 0o644);
  await renew(daemon);
  assert.match(daemon.readLog(), /cannot be used.* key=https_key problem="is open to others/);
  rmSync(pair.key);
  await renew(daemon);
  assert.match(
    daemon.readLog(),
    /cannot be used.* key=https_key problem="cannot be read \(ENOENT\)/,
  );
  execFileSync('mkfifo', ['-m', '600', pair.key]);
  await renew(daemon);
  assert.match(daemon.readLog(), /key=https_key problem="cannot be read \(no regular file\)/);
  await replaceWorkers(daemon);
  assert.deepEqual(await shownByAll(daemon), [fingerprintOf(second)]);
});

test('tokens are replaced by SIGHUP, and a file without one takes the guard from nobody', async () => {
  const file = join(directory, 'tokens');
  writeFileSync(file, 'one\n', { mode: 0o600 });
  const daemon = await start({ workers: '2', token_file: file });
  const ask = async (token: string) => {
    const headers = { Authorization: `Bearer ${token}` };
    const url = `http://${daemon.address()}/metrics`;
    const replies = await Promise.all(Array.from({ length: 20 }, () => fetch(url, { headers })));
    for (const reply of replies) await reply.arrayBuffer();
    return [...new Set(replies.map(({ status }) => status))];
  };
  assert.deepEqual([await ask('one'), await ask('two')], [[200], [401]]);
  writeFileSync(file, 'two\nthree\n');
  await replaceWorkers(daemon);
  assert.deepEqual([await ask('one'), await ask('two')], [[200], [401]]);
  await renew(daemon);
  const isReplaced = async () => (await ask('one')).join() === '401';
  await eventually('the old one is refused', isReplaced, { timeoutMs: withinMs });
  assert.deepEqual([await ask('two'), await ask('three')], [[200], [200]]);
  for (const bad of ['\n', 'a b\n', 'a"b\n']) {
    writeFileSync(file, bad);
    await renew(daemon);
    assert.deepEqual([await ask('two'), await ask('')], [[200], [401]]);
  }
  assert.ok(!/three|a b|a"b/.test(daemon.readLog()));
});

test('after new tokens a worker that is replaced and one that is not read the same sessions of drivers', async () => {
  const database = await startDatabase();
  const file = join(directory, 'driver-tokens');
  const { name, user, host, port, password } = database;
  try {
    await database.query('create table written (id int) engine = innodb');
    writeFileSync(file, 'one\n', { mode: 0o600 });
    const account = { database: name, user, host, port: String(port), password: password || null };
    const served = { workers: '2', token_file: file, drivers: 'planetscale' };
    const daemon = await start({ ...account, ...served });
    writeFileSync(file, 'one\ntwo\n');
    await renew(daemon);
    await replaceWorkers(daemon, 1);
    const both = await openAtEach(Number(daemon.address().split(':').at(-1)), 2);
    for (const [first, second] of [both, both.toReversed()]) {
      assert.ok(first && second);
      const { session } = await execute(first, 'set session transaction read only', null);
      const begun = await execute(second, 'begin', session);
      const { error } = await execute(second, 'insert into written values (1)', begun.session);
      assert.match(error?.message ?? 'it was done', /\(errno 1792\)/);
      await execute(second, 'rollback', begun.session);
    }
    for (const { socket } of both) socket.destroy();
  } finally {
    await Promise.all(daemons.splice(0).map((daemon) => daemon.dispose()));
    await database.stop();
  }
});

type Executed = { readonly session: unknown; readonly error?: { readonly message: string } };

/** As a driver does, with the token `two`. */
async function execute(
  { send, reply }: WorkerConnection,
  query: string,
  session: unknown,
): Promise<Executed> {
  const path = '/psdb.v1alpha1.Database/Execute';
  const Authorization = `Basic ${Buffer.from('app:two').toString('base64')}`;
  send(formatRequest('POST', path, { query, session }, { Authorization }));
  return JSON.parse((await reply()).body.toString()) as Executed;
}

test('connections after SIGHUP are opened with the password that stands in its file then', async () => {
  const database = await startDatabase();
  const account = `'renewed'@'%'`;
  try {
    await database.query(`create user ${account} identified by 'one'`);
    await database.query(`grant select on ${database.name}.* to ${account}`);
    const file = join(directory, 'password');
    writeFileSync(file, 'one\n', { mode: 0o600 });
    const { name, host, port } = database;
    const reached = { database: name, host, port: String(port), user: 'renewed' };
    const daemon = await start({ ...reached, password_file: file });
    const ask = async () => {
      const reply = await fetch(`http://${daemon.address()}/db?{"SQL":"select 1"}`);
      await reply.arrayBuffer();
      return reply.status;
    };
    await eventually('it serves', async () => (await ask()) === 200);
    await database.query(`alter user ${account} identified by 'two'`);
    writeFileSync(file, 'two\n');
    await replaceWorkers(daemon);
    assert.equal(await ask(), 503);
    await renew(daemon);
    await eventually('it serves again', async () => (await ask()) === 200);
  } finally {
    await database.query(`drop user if exists ${account}`);
    await database.stop();
  }
});

// SIGHUP alone has certificates, keys, tokens and password read again, for all workers; nothing else ever does.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { connect } from 'node:tls';
import { createAuthority, type PairFiles } from '../../support/certificates.ts';
import { createDaemon, type Daemon, daemonFor, type Settings } from '../../support/daemon.ts';
import { keySettings } from '../../support/database/server-key.ts';
import { eventually } from '../../support/eventually.ts';
import { logShows } from '../../support/log-shows.ts';
import { gone } from '../../support/processes.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import {
  formatRequest,
  openAtEach,
  type WorkerConnection,
} from '../../support/worker-connections.ts';
import { useRunningDaemon } from './support/running-daemon.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-renewal-'));
after(() => rmSync(directory, { recursive: true }));
const account = `'renewed'@'%'`;
// Registered before those of the database: they run in this order.
after(() => database.query(`drop user if exists ${account}`));
const database = useDatabase({
  prepare: async ({ query, name }) => {
    await query(`drop user if exists ${account}`);
    await query(`create user ${account} identified by 'one'`);
    await query(`grant select, insert on ${name}.* to ${account}`);
    await query('create table written (id int) engine = innodb');
  },
});

async function start(t: TestContext, settings: Settings): Promise<Daemon> {
  const daemon = daemonFor(t, { workers: '2', ...settings });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  return daemon;
}

/** Sends HUP and waits until the supervisor has read everything. */
async function renew(daemon: Daemon): Promise<void> {
  const count = () => daemon.readLog().match(/credentials read again/g)?.length ?? 0;
  const before = count();
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('it is read again', () => count() > before);
}

/** Replaces one of the two workers. */
async function replaceWorker(daemon: Daemon): Promise<void> {
  const [worker = 0, ...others] = daemon.workers();
  process.kill(worker, 'SIGKILL');
  await gone(worker);
  // A worker takes its title in the turn in which it begins to listen.
  const isReady = (pid: number) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('dbhttpd: worker');
  await eventually('another listens', () => {
    const now = daemon.workers();
    return now.length === others.length + 1 && now.every(isReady);
  });
}

const portOf = (daemon: Daemon) => Number(daemon.address().split(':').at(-1));

const fingerprintOf = ({ cert }: PairFiles) =>
  new X509Certificate(readFileSync(cert)).fingerprint256;

/** The certificate of a connection, and the worker that showed it: its requests' ids begin alike. */
function lookAtWorker(port: number): Promise<{ worker: string; shown: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      const shown = socket.getPeerCertificate().fingerprint256 ?? '';
      let text = '';
      socket.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        const worker = /^x-request-id: (\w+)-/im.exec(text)?.[1];
        if (worker === undefined) return;
        socket.destroy();
        resolve({ worker, shown });
      });
      socket.write(formatRequest('GET', '/nothing'));
    });
    socket.once('error', reject);
  });
}

/** The values that both workers show. */
async function shownByBoth(daemon: Daemon): Promise<readonly string[]> {
  const byWorker = new Map<string, string>();
  while (byWorker.size < 2) {
    const looks = Array.from({ length: 6 }, () => lookAtWorker(portOf(daemon)));
    for (const { worker, shown } of await Promise.all(looks)) byWorker.set(worker, shown);
  }
  return [...new Set(byWorker.values())];
}

test('a certificate on disk is shown after SIGHUP, by all workers, and not before, by a new one either', async (t) => {
  const authority = createAuthority(directory);
  const [first, second] = [authority.issue('first'), authority.issue('second')];
  const pair = { cert: join(directory, 'used.pem'), key: join(directory, 'used.key') };
  const install = ({ cert, key }: PairFiles) => {
    copyFileSync(cert, pair.cert);
    copyFileSync(key, pair.key);
  };
  install(first);
  const daemon = await start(t, { https_cert: pair.cert, https_key: pair.key });
  assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(first)]);
  install(second);
  await replaceWorker(daemon);
  assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(first)]);
  await renew(daemon);
  await eventually('all show the new one', async () => {
    assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(second)]);
    return true;
  });

  // Half of a renewal: the new certificate with the old key.
  copyFileSync(first.cert, pair.cert);
  await renew(daemon);
  await logShows(daemon, /error .*cannot be used.* key=https_cert problem="and its key do/);
  assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(second)]);
  // A key that others may read, or that is gone, is none either.
  install(first);
  chmodSync(pair.key, 0o644);
  await renew(daemon);
  await logShows(daemon, /cannot be used.* key=https_key problem="is open to others/);
  rmSync(pair.key);
  await renew(daemon);
  await logShows(daemon, /cannot be used.* key=https_key problem="cannot be read \(ENOENT\)/);
  execFileSync('mkfifo', ['-m', '600', pair.key]);
  await renew(daemon);
  await logShows(daemon, /key=https_key problem="cannot be read \(not a regular file\)/);
  await replaceWorker(daemon);
  assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(second)]);
});

test('SIGHUP takes no certificate that is not valid now, and says why; with other dates it is taken', async (t) => {
  const authority = createAuthority(directory, 'dated');
  const pair = { cert: join(directory, 'dated-used.pem'), key: join(directory, 'dated-used.key') };
  const install = ({ cert, key }: PairFiles) => {
    copyFileSync(cert, pair.cert);
    copyFileSync(key, pair.key);
  };
  const good = authority.issue('dated-good');
  install(good);
  const daemon = await start(t, { https_cert: pair.cert, https_key: pair.key });
  for (const [when, problem] of [
    ['past', 'expired on 2020-01-02T00:00:00.000Z'],
    ['future', 'is not valid before 2048-01-01T00:00:00.000Z'],
  ] as const) {
    install(authority.issue(`dated-${when}`, { when }));
    await renew(daemon);
    const line = new RegExp(`error .*stays in use key=https_cert problem="${problem}"`);
    await logShows(daemon, line);
    assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(good)]);
  }
  await replaceWorker(daemon);
  assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(good)]);

  const soon = authority.issue('dated-soon', { when: 'soon' });
  install(soon);
  await renew(daemon);
  await eventually('all show the new one', async () => {
    assert.deepEqual(await shownByBoth(daemon), [fingerprintOf(soon)]);
    return true;
  });
  await logShows(daemon, /warn .*expires soon key=https_cert problem="expires on 20/);
});

/** The statuses of a request with this token, by each of two workers: 404 if the token is accepted, else 401. */
async function askBoth(both: readonly WorkerConnection[], token: string, path = '/nothing') {
  return [...new Set(await Promise.all(both.map((one) => askOne(one, token, path))))];
}

async function askOne({ send, reply }: WorkerConnection, token: string, path: string) {
  send(formatRequest('GET', path, undefined, { Authorization: `Bearer ${token}` }));
  return (await reply()).status;
}

const select = '/db?{"SQL":"select+1"}';

const [tokens, password] = [join(directory, 'tokens'), join(directory, 'password')];

/** Gives the account and the files this password and this token. */
async function install(secret: string): Promise<void> {
  await database.query(`alter user ${account} identified by '${secret}'`);
  for (const file of [tokens, password]) writeFileSync(file, `${secret}\n`, { mode: 0o600 });
}

/** Each test finds two workers that serve by a token and a password from files. */
const testWithDaemon = useRunningDaemon(async () => {
  await install('one');
  const { name, host, port } = database;
  const daemon = createDaemon({
    ...{ database: name, host, port: String(port), user: 'renewed', ...keySettings(database) },
    ...{ token_file: tokens, password_file: password, drivers: 'planetscale', workers: '2' },
  });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  return daemon;
});

testWithDaemon(
  'tokens and password are read again at SIGHUP, by all workers, and not before, by a new one either; a file without a token removes no guard',
  async (daemon, t) => {
    await install('one');
    await renew(daemon);
    const served = async (token: string, status: number) => {
      const both = await openBoth(t, daemon);
      await eventually(
        `both say ${status}`,
        async () => (await askBoth(both, token, select)).join() === `${status}`,
      );
    };
    await served('one', 200);

    await database.query(`alter user ${account} identified by 'two'`);
    writeFileSync(password, 'two\n');
    writeFileSync(tokens, 'two\nthree\n');
    await replaceWorker(daemon);
    let both = await openBoth(t, daemon);
    assert.deepEqual([await askBoth(both, 'one'), await askBoth(both, 'two')], [[404], [401]]);
    // The new worker has the old password; the other keeps its connections.
    await eventually('the new one has no connection', async () => {
      const replies = await Promise.all(both.map((one) => askOne(one, 'one', select)));
      return replies.includes(503);
    });

    await renew(daemon);
    both = await openBoth(t, daemon);
    await eventually(
      'the old token is refused',
      async () => (await askBoth(both, 'one')).join() === '401',
    );
    assert.deepEqual([await askBoth(both, 'two'), await askBoth(both, 'three')], [[404], [404]]);
    await served('two', 200);
    for (const bad of ['\n', 'x y\n', 'x"y\n']) {
      writeFileSync(tokens, bad);
      await renew(daemon);
      both = await openBoth(t, daemon);
      assert.deepEqual([await askBoth(both, 'two'), await askBoth(both, '')], [[404], [401]]);
    }
    assert.ok(!/three|x y|x"y/.test(daemon.readLog()));
  },
);

/** A connection to each of the two workers. */
async function openBoth(t: TestContext, daemon: Daemon): Promise<readonly WorkerConnection[]> {
  const both = await openAtEach(portOf(daemon), 2);
  t.after(() => {
    for (const { socket } of both) socket.destroy();
  });
  return both;
}

testWithDaemon(
  'after new tokens a worker that is replaced and one that is not read the same sessions of drivers',
  async (daemon, t) => {
    await install('one');
    await renew(daemon);
    writeFileSync(tokens, 'one\ntwo\n');
    await renew(daemon);
    await replaceWorker(daemon);
    const both = await openBoth(t, daemon);
    for (const [first, second] of [both, both.toReversed()]) {
      assert.ok(first && second);
      const { session } = await execute(first, 'set session transaction read only', null);
      const begun = await execute(second, 'begin', session);
      const { error } = await execute(second, 'insert into written values (1)', begun.session);
      assert.match(error?.message ?? 'it was done', /\(errno 1792\)/);
      await execute(second, 'rollback', begun.session);
    }
  },
);

type Executed = { readonly session: unknown; readonly error?: { readonly message: string } };

/** Sends a request as a driver does, with the token `two`. */
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

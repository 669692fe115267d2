// A configuration that cannot be used fails the start silently; the reason is where an operator looks.
// Must not know the settings' meaning.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { currentPlace, fallbackLog } from '../../src/shared/default-paths.ts';
import { createDaemon, type Daemon, runCommand, type Settings } from '../support/daemon.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(settings?: Settings): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

test('an invalid section exits 78 silently, with every fault in its own log', async () => {
  const daemon = create({ port: 'x', workers: '0', password: 'hun;ter2', user: null });
  assert.deepEqual(await daemon.start(), { status: 78, stdout: '', stderr: '' });
  const log = daemon.readLog();
  for (const key of ['port', 'workers', 'password', 'user']) {
    assert.match(log, new RegExp(`dbhttpd\\.ini: \\[world\\] ${key}\\b`));
  }
  assert.ok(!log.includes('hun'));
});

/** Starts with a home of its own, and hands what the start added to the fallback log (root's has a fixed place). */
async function startAndReadFallback(daemon: Daemon, args: readonly string[]) {
  const home = join(daemon.directory, 'home');
  mkdirSync(home);
  const path = fallbackLog({ ...currentPlace(), home });
  const before = existsSync(path) ? readFileSync(path, 'utf8').length : 0;
  const finished = await runCommand(args, { HOME: home });
  return { finished, added: readFileSync(path, 'utf8').slice(before) };
}

test('a log that cannot be created exits 73, with the reason in the fallback log', async () => {
  const daemon = create();
  const log = join(daemon.configPath, 'x.log');
  daemon.configure({ log });
  const target = ['-c', daemon.configPath, '-s', 'world'];
  const { finished, added } = await startAndReadFallback(daemon, target);
  assert.deepEqual(finished, { status: 73, stdout: '', stderr: '' });
  assert.match(added, /cannot create the log/);
  assert.ok(added.includes(log) || added.includes(daemon.configPath));
});

test('a file that is not there exits 66, with the reason in the fallback log', async () => {
  const daemon = create();
  const missing = join(daemon.directory, 'missing.ini');
  const { finished, added } = await startAndReadFallback(daemon, ['-c', missing, '-s', 'world']);
  assert.deepEqual(finished, { status: 66, stdout: '', stderr: '' });
  assert.ok(added.includes(`cannot read ${missing}: ENOENT`));
});

test('a section that is not there exits 78, with the reason in the fallback log', async () => {
  const daemon = create();
  const target = ['-c', daemon.configPath, '-s', 'moon'];
  const { finished, added } = await startAndReadFallback(daemon, target);
  assert.deepEqual(finished, { status: 78, stdout: '', stderr: '' });
  assert.match(added, /\[moon\]: the file has no such section/);
});

test('--check lists every fault of a section and exits 78', async () => {
  const daemon = create({ port: 'x', workers: '0', password: 'hun;ter2' });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.deepEqual([status, stdout], [78, '']);
  assert.equal(stderr.trim().split('\n').length, 3);
  assert.ok(!stderr.includes('hun'));
});

test('a file with a password that others may read is a fault', async () => {
  const daemon = create({ password: 'secret' });
  chmodSync(daemon.configPath, 0o644);
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  assert.match(stderr, /\[world\] password: stands in a file that is open to others/);
});

test('secrets are in no process title, command line or environment of the daemon, and in no log', async () => {
  const daemon = create({ token: 'hunter3' });
  assert.equal((await daemon.start({ DBHTTPD_PASSWORD: 'hunter4' })).status, 0);
  for (const pid of [daemon.pid(), ...daemon.workers()]) {
    for (const file of ['cmdline', 'environ']) {
      assert.ok(!readFileSync(`/proc/${pid}/${file}`, 'utf8').includes('hunter'));
    }
  }
  assert.ok(!daemon.readLog().includes('hunter'));
});

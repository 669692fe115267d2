// A configuration that cannot be used fails the start silently; the reason is where an operator looks.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { currentPlace, fallbackLog } from '../../../src/shared/config/machine-defaults.ts';
import { type Daemon, daemonFor, runCommand } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { logShows } from '../../support/log-shows.ts';

test('an invalid section exits 78 silently, with every fault in its log', async (t) => {
  const daemon = daemonFor(t, { port: 'x', workers: '0', password: 'hun;ter2', user: null });
  assert.deepEqual(await daemon.start(), { status: 78, stdout: '', stderr: '' });
  const log = daemon.readLog();
  for (const key of ['port', 'workers', 'password', 'user']) {
    assert.match(log, new RegExp(`dbhttpd\\.ini: \\[world\\] ${key}\\b`));
  }
  assert.ok(!log.includes('hun'));
});

/** Starts with a separate home, and returns what the start added to the fallback log (root's has a fixed place). */
async function startAndReadFallback(daemon: Daemon, args: readonly string[]) {
  const home = join(daemon.directory, 'home');
  mkdirSync(home);
  const path = fallbackLog({ ...currentPlace(), home });
  const before = existsSync(path) ? readFileSync(path, 'utf8').length : 0;
  const finished = await runCommand(args, { HOME: home });
  return { finished, added: readFileSync(path, 'utf8').slice(before) };
}

test('input files are not overwritten: exit 78, and they are unchanged', async (t) => {
  const daemon = daemonFor(t);
  for (const key of ['log', 'pidfile']) {
    daemon.configure({ [key]: daemon.configPath });
    const before = readFileSync(daemon.configPath, 'utf8');
    assert.deepEqual(await daemon.start(), { status: 78, stdout: '', stderr: '' });
    assert.equal(readFileSync(daemon.configPath, 'utf8'), before);
  }
});

test('a log that cannot be created exits 73, with the reason in the fallback log', async (t) => {
  const daemon = daemonFor(t);
  const log = join(daemon.configPath, 'x.log');
  daemon.configure({ log });
  const target = ['-c', daemon.configPath, '-s', 'world'];
  const { finished, added } = await startAndReadFallback(daemon, target);
  assert.deepEqual(finished, { status: 73, stdout: '', stderr: '' });
  assert.match(added, /cannot create the log/);
  assert.ok(added.includes(log) || added.includes(daemon.configPath));
});

test('a file that is not there exits 66, with the reason in the fallback log', async (t) => {
  const daemon = daemonFor(t);
  const missing = join(daemon.directory, 'missing.ini');
  const { finished, added } = await startAndReadFallback(daemon, ['-c', missing, '-s', 'world']);
  assert.deepEqual(finished, { status: 66, stdout: '', stderr: '' });
  assert.ok(added.includes(`cannot read ${missing}: ENOENT`));
});

test('a section that is not there exits 78, with the reason in the fallback log', async (t) => {
  const daemon = daemonFor(t);
  const target = ['-c', daemon.configPath, '-s', 'moon'];
  const { finished, added } = await startAndReadFallback(daemon, target);
  assert.deepEqual(finished, { status: 78, stdout: '', stderr: '' });
  assert.match(added, /\[moon\]: the file has no such section/);
});

test('a token before the first section exits 78 with its line, and so does a section that is not closed', async (t) => {
  const daemon = daemonFor(t);
  const text = readFileSync(daemon.configPath, 'utf8');
  for (const [strange, fault] of [
    [`token = hunter2\n${text}`, /dbhttpd\.ini: token \(line 1\): is before the first \[section\]/],
    [`${text}\n[moon\nhost = x\n`, /dbhttpd\.ini: \(line \d+\): begins a section with \[/],
  ] as const) {
    writeFileSync(daemon.configPath, strange);
    await assertFault(daemon, fault);
  }
  assert.ok(!daemon.readLog().includes('hun'));
});

test('--check lists every fault of a section and exits 78', async (t) => {
  const daemon = daemonFor(t, { port: 'x', workers: '0', password: 'hun;ter2' });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  assert.match(stdout, /^verdict: not ok \(\d+ faults, no warnings\), exit 78\n$/);
  assert.equal(stderr.trim().split('\n').length, 3);
  assert.ok(!stderr.includes('hun'));
});

test('a file with a password that others may read is a fault', async (t) => {
  const daemon = daemonFor(t, { password: 'secret' });
  chmodSync(daemon.configPath, 0o644);
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  assert.match(stderr, /\[world\] password: is in a file that is open to others/);
});

test('secrets are in no process title, command line or environment of the daemon, and in no log', async (t) => {
  const daemon = daemonFor(t, { token: 'hunter3' });
  assert.equal((await daemon.start({ DBHTTPD_PASSWORD: 'hunter4' })).status, 0);
  for (const pid of [daemon.pid(), ...daemon.workers()]) {
    for (const file of ['cmdline', 'environ']) {
      assert.ok(!readFileSync(`/proc/${pid}/${file}`, 'utf8').includes('hunter'));
    }
  }
  assert.ok(!daemon.readLog().includes('hunter'));
});

/** A fault of the section: --check and a start report it, with the same status. */
async function assertFault(daemon: Daemon, fault: RegExp): Promise<void> {
  const checked = await daemon.run(['--check']);
  assert.equal(checked.status, 78, checked.stderr);
  assert.match(checked.stderr, fault);
  assert.deepEqual(await daemon.start(), { status: 78, stdout: '', stderr: '' });
  await logShows(daemon, fault);
}

test('a path to listen on that is a regular file or a link is a fault, and remains unchanged', async (t) => {
  const daemon = daemonFor(t);
  const listen = join(daemon.directory, 'http.sock');
  daemon.configure({ listen });
  writeFileSync(listen, 'precious');
  await assertFault(daemon, /\[world\] listen: is the path of something that is not a socket/);
  assert.equal(readFileSync(listen, 'utf8'), 'precious');
  rmSync(listen);
  symlinkSync(daemon.configPath, listen);
  await assertFault(daemon, /\[world\] listen: is the path of something that is not a socket/);
  assert.ok(lstatSync(listen).isSymbolicLink());
});

test('a path that another process listens on is in use, for --check too', async (t) => {
  const daemon = daemonFor(t, { port: '1' });
  const listen = join(daemon.directory, 'http.sock');
  daemon.configure({ listen });
  const other = createServer().listen(listen);
  await once(other, 'listening');
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 69);
  assert.match(stderr, /cannot listen on .*http\.sock: EADDRINUSE/);
  assert.equal((await daemon.start()).status, 69);
  assert.ok(lstatSync(listen).isSocket());
  other.close();
});

test('a pidfile that any user could replace is a fault; with the sticky bit it is none', async (t) => {
  const daemon = daemonFor(t);
  const open = join(daemon.directory, 'open');
  mkdirSync(open);
  chmodSync(open, 0o777);
  daemon.configure({ pidfile: join(open, 'world.pid') });
  await assertFault(daemon, /\[world\] pidfile: is in a directory that others may write/);
  chmodSync(open, 0o1777);
  assert.equal((await daemon.start()).status, 0);
  process.kill(Number(readFileSync(join(open, 'world.pid'), 'utf8')), 'SIGTERM');
  await eventually('it has stopped', () => /stopped/.test(daemon.readLog()));
});

test('a state directory that any user may write to is a fault', async (t) => {
  const daemon = daemonFor(t);
  mkdirSync(daemon.stateDir);
  chmodSync(daemon.stateDir, 0o777);
  await assertFault(daemon, /\[world\] state_dir: is a directory that others may write/);
  chmodSync(daemon.stateDir, 0o700);
  assert.equal((await daemon.start()).status, 0);
});

test("a log that is a pipe, or a stranger's link, fails the start at once; a link of one's own is followed", async (t) => {
  const daemon = daemonFor(t);
  const log = join(daemon.directory, 'odd.log');
  daemon.configure({ log });
  const target = ['-c', daemon.configPath, '-s', 'world'];
  const home = join(daemon.directory, 'home');
  mkdirSync(home);
  execFileSync('mkfifo', [log]);
  assert.equal((await runCommand(target, { HOME: home })).status, 73);
  assert.match(
    (await daemon.run(['--check'])).stderr,
    /cannot create the log .*not a regular file/,
  );
  rmSync(log);
  symlinkSync(join(daemon.directory, 'real.log'), log);
  if (process.getuid?.() === 0) {
    lchownSync(log, 12_345, 12_345);
    assert.equal((await runCommand(target, { HOME: home })).status, 73);
    assert.equal(existsSync(join(daemon.directory, 'real.log')), false);
    lchownSync(log, 0, 0);
    const real = join(daemon.directory, 'real.log');
    writeFileSync(real, '');
    chownSync(real, 12_345, 12_345);
    assert.equal((await runCommand(target, { HOME: home })).status, 73);
    assert.match((await daemon.run(['--check'])).stderr, /cannot create the log .*another user/);
    assert.equal(readFileSync(real, 'utf8'), '');
    chownSync(real, 0, 0);
  }
  assert.equal((await daemon.start()).status, 0);
  assert.match(readFileSync(join(daemon.directory, 'real.log'), 'utf8'), /listening/);
});

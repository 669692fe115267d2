// A start is silent and detached, and its exit status is true. Other invocations print something: help, version, misuse.
import assert from 'node:assert/strict';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { daemonFor, runCommand, sessionOf } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { logShows } from '../../support/log-shows.ts';
import { childrenOf, gone, isAlive } from '../../support/processes.ts';

const faults = new URL('./support/worker-faults.js', import.meta.url).href;
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import ${faults}`, WORKER_FAULT: fault });

for (const asked of ['--help', '-h']) {
  test(`${asked} prints the usage and exits 0`, async () => {
    const { status, stdout, stderr } = await runCommand([asked]);
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /^usage: dbhttpd -c /);
  });
}

for (const asked of ['--version', '-V']) {
  test(`${asked} prints the version of the package`, async () => {
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    const finished = await runCommand([asked]);
    assert.deepEqual(finished, { status: 0, stdout: `dbhttpd ${manifest.version}\n`, stderr: '' });
  });
}

for (const args of [
  [],
  ['-c', 'relative.ini', '-s', 'x'],
  ['-c', '/x', '-s', 'y', '--reload'],
  ['-c', '/x', '-s', 'a:b', '-m', 'b'],
]) {
  test(`a misuse reports the mistake, shows the usage and exits 64: ${args.join(' ')}`, async () => {
    const { status, stdout, stderr } = await runCommand(args);
    assert.deepEqual([status, stdout], [64, '']);
    assert.match(stderr, /^dbhttpd: .+\nusage: /);
  });
}

test('a start prints nothing, leaves a new session at /, without terminal, and a pidfile; a stop leaves no process and no pidfile', async (t) => {
  const daemon = daemonFor(t, { workers: '2' });
  assert.deepEqual(await daemon.start(), { status: 0, stdout: '', stderr: '' });
  const pid = daemon.pid();
  assert.equal(sessionOf(pid), pid);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.doesNotMatch(status, new RegExp(`^PPid:\\s${process.pid}$`, 'm'));
  assert.match(status, /^Umask:\s0027$/m);
  assert.equal(readlinkSync(`/proc/${pid}/cwd`), '/');
  assert.equal(readFileSync(daemon.pidfile, 'utf8'), `${pid}\n`);
  assert.equal(statSync(daemon.pidfile).mode & 0o777, 0o644);
  const processes = [pid, ...daemon.workers()];
  assert.equal(processes.length, 3);
  for (const one of processes) {
    for (const fd of [0, 1, 2]) {
      assert.match(readlinkSync(`/proc/${one}/fd/${fd}`), /^(\/dev\/null|pipe:.*|socket:.*)$/);
    }
  }
  const reply = await fetch(`http://${daemon.address()}/livez`, {
    headers: { Connection: 'close' },
  });
  assert.equal(reply.status, 200);
  process.kill(pid, 'SIGTERM');
  await eventually('all processes end', () => !processes.some(isAlive));
  assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
});

test('an address in use exits 69 with its reason in the log', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const daemon = daemonFor(t, { listen: `127.0.0.1:${port}` });
  assert.deepEqual(await daemon.start(), { status: 69, stdout: '', stderr: '' });
  await logShows(daemon, new RegExp(`cannot listen address=127.0.0.1:${port} reason=EADDRINUSE`));
  server.close();
});

test('an address that this machine has not exits 69', async (t) => {
  const daemon = daemonFor(t, { listen: '192.0.2.1:9090', insecure: 'on' });
  assert.equal((await daemon.start()).status, 69);
  await logShows(daemon, /cannot listen .*EADDRNOTAVAIL/);
});

test('a pidfile that cannot be created exits 73', async (t) => {
  const daemon = daemonFor(t);
  const readOnly = '/proc/self/world.pid';
  for (const pidfile of [join(daemon.directory, 'missing', 'world.pid'), readOnly]) {
    daemon.configure({ pidfile });
    assert.deepEqual(await daemon.start(), { status: 73, stdout: '', stderr: '' });
  }
  assert.equal(daemon.readLog().match(/cannot create the pidfile/g)?.length, 2);
});

test('a unix socket gets its mode, replaces a dead one, and goes with its daemon', async (t) => {
  const daemon = daemonFor(t);
  const path = join(daemon.directory, 'http.sock');
  daemon.configure({ listen: path, listen_mode: '0600' });
  assert.equal((await daemon.start()).status, 0);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const pid = daemon.pid();
  process.kill(pid, 'SIGKILL');
  await gone(pid);
  assert.equal((await daemon.start()).status, 0);
  process.kill(daemon.pid(), 'SIGTERM');
  await eventually(
    'the socket is gone',
    () => statSync(path, { throwIfNoEntry: false }) === undefined,
  );
});

test('a start that is killed half way leaves nothing running', async (t) => {
  const daemon = daemonFor(t);
  const launcher = daemon.spawn([], withFault('never-ready'));
  const supervisor = await eventually('a supervisor is there', () => daemon.findPid());
  const [worker = 0] = await eventually('and a worker', () => {
    const workers = childrenOf(supervisor);
    return workers.length > 0 ? workers : null;
  });
  launcher.kill('SIGKILL');
  await gone(supervisor);
  await gone(worker);
  assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
});

test('a second SIGTERM stops at once', async (t) => {
  const daemon = daemonFor(t);
  await daemon.start();
  const supervisor = daemon.pid();
  const [worker = 0] = daemon.workers();
  // A worker that cannot hear: the first signal would wait for it.
  process.kill(worker, 'SIGSTOP');
  process.kill(supervisor, 'SIGTERM');
  await eventually('it drains', () => /draining/.test(daemon.readLog()));
  process.kill(supervisor, 'SIGTERM');
  await gone(supervisor);
  assert.ok(!isAlive(worker));
  assert.doesNotMatch(daemon.readLog(), /a worker hangs/);
});

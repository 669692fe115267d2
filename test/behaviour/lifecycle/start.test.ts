// A start is silent, detached, and its exit status is true.
// Must not know what the gateway answers.
import assert from 'node:assert/strict';
import { readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { createDaemon, type Daemon, type Settings, sessionOf } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { gone, isAlive } from '../../support/processes.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(settings?: Settings): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

const faults = new URL('./support/worker-faults.js', import.meta.url).href;
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import ${faults}`, WORKER_FAULT: fault });

test('a start prints nothing, leaves a session of its own at /, without terminal, and a pidfile', async () => {
  const daemon = create({ workers: '2' });
  assert.deepEqual(await daemon.start(), { status: 0, stdout: '', stderr: '' });
  const pid = daemon.pid();
  assert.equal(sessionOf(pid), pid);
  assert.doesNotMatch(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
    new RegExp(`^PPid:\\s${process.pid}$`, 'm'),
  );
  assert.equal(readlinkSync(`/proc/${pid}/cwd`), '/');
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^Umask:\s0027$/m);
  assert.equal(readFileSync(daemon.pidfile, 'utf8'), `${pid}\n`);
  assert.equal(statSync(daemon.pidfile).mode & 0o777, 0o644);
  const processes = [pid, ...daemon.workers()];
  assert.equal(processes.length, 3);
  for (const one of processes) {
    for (const fd of [0, 1, 2]) {
      assert.match(readlinkSync(`/proc/${one}/fd/${fd}`), /^(\/dev\/null|pipe:.*|socket:.*)$/);
    }
  }
  assert.equal((await fetch(`http://${daemon.address()}/livez`)).status > 0, true);
});

test('a stop leaves no process and no pidfile', async () => {
  const daemon = create({ workers: '2' });
  await daemon.start();
  const processes = [daemon.pid(), ...daemon.workers()];
  process.kill(daemon.pid(), 'SIGTERM');
  await eventually('all processes end', () => !processes.some(isAlive));
  assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
});

test('a second start exits 75, says why in the log, and harms nothing', async () => {
  const daemon = create();
  await daemon.start();
  const pid = daemon.pid();
  assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
  assert.equal(daemon.pid(), pid);
  assert.match(daemon.readLog(), /cannot be started .*it is running/);
});

test('an address in use exits 69 with its reason in the log', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const daemon = create({ listen: `127.0.0.1:${port}` });
  assert.deepEqual(await daemon.start(), { status: 69, stdout: '', stderr: '' });
  assert.match(
    daemon.readLog(),
    new RegExp(`cannot listen address=127.0.0.1:${port} reason=EADDRINUSE`),
  );
  server.close();
});

test('an address that this machine has not exits 69', async () => {
  const daemon = create({ listen: '192.0.2.1:9090', insecure: 'on' });
  assert.equal((await daemon.start()).status, 69);
  assert.match(daemon.readLog(), /cannot listen .*EADDRNOTAVAIL/);
});

test('a pidfile that cannot be created exits 73', async () => {
  const daemon = create();
  const readOnly = '/proc/self/world.pid';
  for (const pidfile of [join(daemon.directory, 'missing', 'world.pid'), readOnly]) {
    daemon.configure({ pidfile });
    assert.deepEqual(await daemon.start(), { status: 73, stdout: '', stderr: '' });
  }
  assert.equal(daemon.readLog().match(/cannot create the pidfile/g)?.length, 2);
});

test('a worker that never gets ready fails the start within 15 s and is ended', async () => {
  const daemon = create();
  assert.equal((await daemon.start(withFault('never-ready'))).status, 69);
  // The claim is the lock, which is created in the moment before it is taken.
  const tookMs = Date.now() - statSync(`${daemon.pidfile}.lock`).birthtimeMs;
  assert.ok(tookMs < 15_500, `${tookMs} ms`);
  assert.match(daemon.readLog(), /not every worker listened in time/);
});

test('a stale pidfile is replaced, and the process that it names left alone', async () => {
  const daemon = create();
  writeFileSync(daemon.pidfile, `${process.pid}\n`);
  assert.equal((await daemon.start()).status, 0);
  assert.notEqual(daemon.pid(), process.pid);
});

test('a unix socket gets its mode, replaces a dead one, and goes with its daemon', async () => {
  const daemon = create();
  const path = join(daemon.directory, 'http.sock');
  daemon.configure({ listen: path, listen_mode: '0600' });
  assert.equal((await daemon.start()).status, 0);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const pid = daemon.pid();
  process.kill(pid, 'SIGKILL');
  await eventually('the supervisor is gone', () => !isAlive(pid));
  assert.equal((await daemon.start()).status, 0);
  process.kill(daemon.pid(), 'SIGTERM');
  await eventually(
    'the socket is gone',
    () => statSync(path, { throwIfNoEntry: false }) === undefined,
  );
});

test('a start whose instance is held by a process that does not answer exits 75 with a log line', async () => {
  const daemon = create();
  await daemon.start();
  process.kill(daemon.pid(), 'SIGSTOP');
  const began = performance.now();
  assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
  assert.ok(performance.now() - began < 8000);
  process.kill(daemon.pid(), 'SIGCONT');
  assert.match(daemon.readLog(), /cannot be started reason="its holder does not answer"/);
});

test('a start that is killed half way leaves nothing running', async () => {
  const daemon = create();
  const launcher = daemon.spawn([], withFault('never-ready'));
  const supervisor = await eventually('a supervisor is there', () => daemon.findPid());
  const [worker = 0] = await eventually('and a worker', () =>
    daemon.workers().length > 0 ? daemon.workers() : null,
  );
  launcher.kill('SIGKILL');
  await gone(supervisor);
  await gone(worker);
  assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
});

test('a second SIGTERM stops at once', async () => {
  const daemon = create();
  await daemon.start();
  const supervisor = daemon.pid();
  const [worker = 0] = daemon.workers();
  // A worker that cannot hear: the first signal would wait for it.
  process.kill(worker, 'SIGSTOP');
  process.kill(supervisor, 'SIGTERM');
  await eventually('it drains', () => /draining/.test(daemon.readLog()));
  process.kill(supervisor, 'SIGTERM');
  await gone(supervisor, 1000);
  assert.ok(!isAlive(worker));
});

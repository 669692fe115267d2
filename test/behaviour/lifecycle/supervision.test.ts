// Workers that die or hang are replaced; workers whose supervisor dies end with it.
// Must not know what the gateway answers.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { afterEach, test } from 'node:test';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { clientPortsOf } from '../../support/kernel-sockets.ts';
import { gone, isAlive } from '../../support/processes.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

async function start(settings: Settings = {}, env?: NodeJS.ProcessEnv): Promise<Daemon> {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  assert.equal((await daemon.start(env)).status, 0);
  return daemon;
}

const withFaults = {
  NODE_OPTIONS: `--import ${new URL('./support/worker-faults.js', import.meta.url).href}`,
};

/** True when a connection is accepted by the kernel, whoever serves it later. */
function isAccepted(address: string): Promise<boolean> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

test('a killed worker is replaced within 1 s, and no connection is refused meanwhile', async () => {
  const daemon = await start();
  const [worker = 0] = daemon.workers();
  process.kill(worker, 'SIGKILL');
  const attempts: Promise<boolean>[] = [];
  await eventually(
    'another worker is there',
    () => {
      attempts.push(isAccepted(daemon.address()));
      return daemon.workers().some((pid) => pid !== worker);
    },
    { timeoutMs: 1000 },
  );
  assert.ok((await Promise.all(attempts)).every((accepted) => accepted));
  assert.ok((await fetch(`http://${daemon.address()}/livez`)).status > 0);
});

/** Clients that were answered once, on connections that stay; at least one with each of two workers. */
async function connectToBoth(daemon: Daemon): Promise<RawConnection[]> {
  const port = Number(daemon.address().split(':')[1]);
  const clients: RawConnection[] = [];
  const held = () => daemon.workers().map((worker) => clientPortsOf(worker, port).size);
  await eventually('both have clients', async () => {
    const client = await openRaw(port);
    clients.push(client);
    await ask(client);
    return held().every((count) => count > 0);
  });
  return clients;
}

async function ask(client: RawConnection): Promise<void> {
  client.send('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n');
  assert.equal((await client.reply()).status, 404);
}

test("a stopped worker is replaced within 12 s; the other's clients and new ones notice nothing", async () => {
  const daemon = await start({ workers: '2' });
  const clients = await connectToBoth(daemon);
  const [worker = 0] = daemon.workers();
  process.kill(worker, 'SIGSTOP');
  const port = Number(daemon.address().split(':')[1]);
  const itsOwn = clientPortsOf(worker, port);
  const others = clients.filter(({ socket }) => !itsOwn.has(socket.localPort ?? 0));
  let slowestMs = 0;
  await eventually(
    'it is ended',
    async () => {
      const from = performance.now();
      await Promise.all(others.map(ask));
      assert.equal((await fetch(`http://${daemon.address()}/livez`)).status, 200);
      slowestMs = Math.max(slowestMs, performance.now() - from);
      return !isAlive(worker);
    },
    { timeoutMs: 12_000, everyMs: 50 },
  );
  await eventually('another takes its slot', () => daemon.workers().length === 2, {
    timeoutMs: 1000,
  });
  assert.match(daemon.readLog(), new RegExp(`a worker hangs slot=\\d pid=${worker}`));
  assert.ok(slowestMs < 3000, `${slowestMs} ms`);
  for (const client of clients) client.socket.destroy();
});

test('workers are gone 2 s after their supervisor was killed, a spinning one too', async () => {
  const daemon = await start({ workers: '2' }, withFaults);
  const workers = daemon.workers();
  assert.equal(workers.length, 2);
  process.kill(workers[0] ?? 0, 'SIGUSR2');
  process.kill(daemon.pid(), 'SIGKILL');
  await eventually('all workers are gone', () => !workers.some(isAlive), { timeoutMs: 2000 });
});

test('the next start ends a stopped orphan that holds the address, and takes over', async () => {
  const daemon = await start();
  const [worker = 0] = daemon.workers();
  const supervisor = daemon.pid();
  process.kill(worker, 'SIGSTOP');
  process.kill(supervisor, 'SIGKILL');
  await eventually('the supervisor is gone', () => !isAlive(supervisor));
  assert.ok(isAlive(worker));
  daemon.configure({ listen: daemon.address() });
  assert.equal((await daemon.start()).status, 0);
  assert.ok(!isAlive(worker));
  assert.match(daemon.readLog(), new RegExp(`ended orphaned workers pids=${worker}`));
});

test('no process of the daemon opens an inspector on SIGUSR1', async () => {
  const daemon = await start();
  const processes = [daemon.pid(), ...daemon.workers()];
  for (const pid of processes) process.kill(pid, 'SIGUSR1');
  await fetch(`http://${daemon.address()}/livez`);
  await assert.rejects(fetch('http://127.0.0.1:9229/json'));
  assert.ok(processes.every(isAlive));
});

test('a foreground instance logs to stderr, stops on SIGTERM with 0, and leaves nothing', async () => {
  const daemon = createDaemon();
  daemons.push(daemon);
  const child = daemon.spawn(['--foreground']);
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await eventually('it listens', () => /listening 127/.test(text));
  assert.equal(daemon.pid(), child.pid);
  const address = / listening (\S+)$/m.exec(text)?.[1];
  assert.ok((await fetch(`http://${address}/livez`)).status > 0);
  const workers = daemon.workers();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(!workers.some(isAlive));
  assert.equal(daemon.findPid(), null);
});

test('SIGHUP reopens the log without losing a line', async () => {
  const daemon = await start();
  const { renameSync, readFileSync, existsSync } = await import('node:fs');
  renameSync(daemon.log, `${daemon.log}.1`);
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('the log is there again', () => existsSync(daemon.log));
  process.kill(daemon.pid(), 'SIGTERM');
  await eventually('it has stopped', () => /stopped/.test(daemon.readLog()));
  assert.match(readFileSync(`${daemon.log}.1`, 'utf8'), /listening/);
});

for (const [fault, reason] of [
  ['heap', /worker says .*heap out of memory/],
  ['throw', /uncaught exception .*a fault while serving, on purpose/],
] as const) {
  test(`a worker that fails while it serves (${fault}) is replaced, and the log says why`, async () => {
    const options = `${withFaults.NODE_OPTIONS} --max-old-space-size=64`;
    const daemon = await start({}, { NODE_OPTIONS: options, WORKER_FAULT: fault });
    const [worker = 0] = daemon.workers();
    process.kill(worker, 'SIGUSR2');
    await gone(worker);
    await eventually('another takes its slot', () => daemon.workers().length === 1);
    await eventually('the log says why', () => reason.test(daemon.readLog()));
    assert.ok((await fetch(`http://${daemon.address()}/livez`)).status > 0);
  });
}

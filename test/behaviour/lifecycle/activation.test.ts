// Socket activation: the socket is somebody else's, outlives the instance, and no connection is lost in between.
// Must not know how the socket reaches the workers.
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { bindListener, type Listener } from '../../../src/supervisor/listener.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { gone } from '../../support/processes.ts';
import { spawnActivated, startActivated } from './support/activated.ts';

const daemons: Daemon[] = [];
const listeners: Listener[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
  for (const listener of listeners.splice(0)) listener.close();
});

function create(settings: Settings = {}): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

/** Bound and listening, and nobody here accepts. */
const bind = (host: string | null = '127.0.0.1') => bindAt({ kind: 'tcp', host, port: 0 });

async function bindAt(address: Parameters<typeof bindListener>[0]) {
  const bound = await bindListener(address, 0o660);
  if (!bound.ok) throw new Error(bound.reason);
  listeners.push(bound.listener);
  const { fd, address: own } = bound.listener;
  return { fd, port: own.kind === 'tcp' ? own.port : 0 };
}

const request = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

async function stop(daemon: Daemon): Promise<void> {
  const pid = daemon.pid();
  process.kill(pid, 'SIGTERM');
  await gone(pid);
}

test('serves the inherited socket in the place of `listen`, and leaves it when it stops', async () => {
  const [ours, { fd, port }] = [create({ workers: '2' }), await bind()];
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  assert.equal(ours.address(), `127.0.0.1:${port}`);
  assert.equal((await exchange(port, request)).status, 200);
  for (const pid of [ours.pid(), ...ours.workers()]) {
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'latin1'), /LISTEN_(?:PID|FD)/);
  }
  await stop(ours);
  // Nobody runs: the kernel keeps what comes.
  const waiting = await openRaw(port);
  try {
    waiting.send(request);
    assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
    assert.equal((await waiting.reply()).status, 200);
  } finally {
    waiting.socket.destroy();
  }
});

test('a unix socket keeps its name when the instance stops', async () => {
  const ours = create();
  const path = join(ours.directory, 'inherited.sock');
  const { fd } = await bindAt({ kind: 'unix', path });
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  // It was bound under a name that begins so.
  assert.ok(ours.address().startsWith(path));
  assert.equal((await exchange({ path }, request)).status, 200);
  await stop(ours);
  assert.ok(existsSync(path));
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  assert.equal((await exchange({ path }, request)).status, 200);
});

test('in the foreground, as systemd runs it', async () => {
  const [ours, { fd, port }] = [create(), await bind()];
  const child = spawnActivated(ours, { fd, args: ['--foreground'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    assert.equal((await exchange(port, request)).status, 200);
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
    const waiting = await openRaw(port);
    waiting.socket.destroy();
  } finally {
    child.kill('SIGKILL');
  }
});

test('three kills, each followed by a start, refuse no connection and lose no request', async () => {
  const [ours, { fd, port }] = [create({ workers: '2' }), await bind()];
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  let isOver = false;
  let answered = 0;
  const lane = async () => {
    while (!isOver) {
      assert.equal((await exchange(port, request)).status, 200);
      answered += 1;
    }
  };
  const lanes = Promise.all(Array.from({ length: 8 }, lane));
  // Awaited at the end: until then a failure must not end the run.
  lanes.catch(() => {});
  try {
    for (let kills = 0; kills < 3; kills += 1) {
      const [served, old] = [answered, ours.pid()];
      process.kill(old, 'SIGTERM');
      assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
      assert.notEqual(ours.pid(), old);
      await eventually('the successor serves', () => answered > served + 50);
    }
  } finally {
    isOver = true;
  }
  await lanes;
});

const faults = [
  ['two sockets', '2', /LISTEN_FDS is 2: /],
  ['no number', 'many', /LISTEN_FDS is many: /],
] as const;
for (const [what, count, line] of faults) {
  test(`${what}: exit 69, and the log says why`, async () => {
    const [ours, { fd }] = [create(), await bind()];
    assert.equal(await startActivated(ours, { fd, count }), 69);
    assert.match(ours.readLog(), line);
  });
}

test('a descriptor that does not listen: exit 69, and the log says why', async () => {
  const ours = create();
  const fd = openSync('/dev/null', 'r');
  try {
    assert.equal(await startActivated(ours, { fd }), 69);
  } finally {
    closeSync(fd);
  }
  assert.match(ours.readLog(), /descriptor 3 is no listening stream socket/);
});

test('a socket beyond loopback where `listen` is on loopback: exit 78, whoever could ask is not let in', async () => {
  const [ours, { fd }] = [create(), await bind(null)];
  assert.equal(await startActivated(ours, { fd }), 78);
  assert.match(ours.readLog(), /beyond loopback/);
});

test('sockets that are meant for another process are left alone: `listen` is bound', async () => {
  const [ours, { fd, port }] = [create(), await bind()];
  assert.equal(await startActivated(ours, { fd, pid: 1 }), 0, ours.readLog());
  assert.notEqual(ours.address(), `127.0.0.1:${port}`);
  for (const pid of [ours.pid(), ...ours.workers()]) {
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'latin1'), /LISTEN_(?:PID|FD)/);
  }
});

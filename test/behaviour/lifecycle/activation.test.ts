// Socket activation: the socket belongs to another process, outlives the instance, and no connection is lost in between.
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { bindListener, type Listener } from '../../../src/supervisor/listener/listener.ts';
import { type Daemon, daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { logShows } from '../../support/log-shows.ts';
import { gone } from '../../support/processes.ts';
import { spawnActivated, startActivated } from './support/activated.ts';

const listeners: Listener[] = [];
afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});

/** Bound and listening, and no process here accepts. */
const bind = (host: string | null = '127.0.0.1') => bindAt({ kind: 'tcp', host, port: 0 });

async function bindAt(address: Parameters<typeof bindListener>[0]) {
  const bound = await bindListener(address, 0o660);
  if (!bound.ok) throw new Error(bound.reason);
  listeners.push(bound.listener);
  const { fd, address: own } = bound.listener;
  return { fd, port: own.kind === 'tcp' ? own.port : 0 };
}

const request = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
/** A client rests between two requests: they are to go on, not to be many. */
const restMs = 10;

function assertNotInherited(daemon: Daemon): void {
  for (const pid of [daemon.pid(), ...daemon.workers()]) {
    assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'latin1'), /LISTEN_(?:PID|FD)/);
  }
}

test('serves the inherited socket in the place of `listen`, and leaves it when it stops: kills, each followed by a start, refuse no connection and lose no request', async (t) => {
  const [ours, { fd, port }] = [daemonFor(t, { workers: '2' }), await bind()];
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  assert.equal(ours.address(), `127.0.0.1:${port}`);
  assertNotInherited(ours);
  let isOver = false;
  let answered = 0;
  const lane = async () => {
    while (!isOver) {
      assert.equal((await exchange(port, request)).status, 200);
      answered += 1;
      await pause(restMs);
    }
  };
  const lanes = Promise.all(Array.from({ length: 4 }, lane));
  // Awaited at the end: until then a failure must not end the run.
  lanes.catch(() => {});
  try {
    for (const kill of [1, 2]) {
      await eventually(`it serves before kill ${kill}`, () => answered > 50 * kill);
      const old = ours.pid();
      process.kill(old, 'SIGTERM');
      // No process runs, so the kernel keeps the connections.
      if (kill === 1) await gone(old);
      assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
      assert.notEqual(ours.pid(), old);
    }
    const served = answered;
    await eventually('the last one serves', () => answered > served + 50);
  } finally {
    isOver = true;
  }
  await lanes;
});

test('a unix socket keeps its name when the instance stops, which runs in the foreground as systemd runs it', async (t) => {
  const ours = daemonFor(t);
  const path = join(ours.directory, 'inherited.sock');
  const { fd } = await bindAt({ kind: 'unix', path });
  const child = spawnActivated(ours, { fd, args: ['--foreground'] });
  t.after(() => child.kill('SIGKILL'));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  assert.equal((await exchange({ path }, request)).status, 200);
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(existsSync(path));
  // No process runs, so the kernel keeps the connections.
  const waiting = await openRaw({ path });
  t.after(() => void waiting.socket.destroy());
  waiting.send(request);
  assert.equal(await startActivated(ours, { fd }), 0, ours.readLog());
  // It was bound under a name that begins so.
  assert.ok(ours.address().startsWith(path));
  assert.equal((await waiting.reply()).status, 200);
});

const faults = [
  ['two sockets', '2', /LISTEN_FDS is 2: /],
  ['no number', 'many', /LISTEN_FDS is many: /],
] as const;
for (const [what, count, line] of faults) {
  test(`${what}: exit 69, and the log has the reason`, async (t) => {
    const [ours, { fd }] = [daemonFor(t), await bind()];
    assert.equal(await startActivated(ours, { fd, count }), 69);
    await logShows(ours, line);
  });
}

test('a descriptor that does not listen: exit 69, and the log has the reason', async (t) => {
  const ours = daemonFor(t);
  const fd = openSync('/dev/null', 'r');
  try {
    assert.equal(await startActivated(ours, { fd }), 69);
  } finally {
    closeSync(fd);
  }
  await logShows(ours, /descriptor 3 is not a listening stream socket/);
});

test('a socket beyond loopback while `listen` is on loopback: exit 78, without serving', async (t) => {
  const [ours, { fd }] = [daemonFor(t), await bind(null)];
  assert.equal(await startActivated(ours, { fd }), 78);
  await logShows(ours, /beyond loopback/);
});

test('sockets that are meant for another process are left alone: `listen` is bound', async (t) => {
  const [ours, { fd, port }] = [daemonFor(t), await bind()];
  assert.equal(await startActivated(ours, { fd, pid: 1 }), 0, ours.readLog());
  assert.notEqual(ours.address(), `127.0.0.1:${port}`);
  assertNotInherited(ours);
});

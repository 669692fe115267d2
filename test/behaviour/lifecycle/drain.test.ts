// A stop finishes what is in flight, refuses what is new, and leaves nothing behind.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';
import { daemonFor } from '../../support/daemon.ts';
import { startFakeMysql } from '../../support/database/fake-mysql.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { serverSockets } from '../../support/kernel-sockets.ts';
import { freeze, gone, isAlive, signal } from '../../support/processes.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({ prepare: createGate });

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(false));
    socket.once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}

test('SIGTERM answers 20 statements in flight, refuses new connections, and goes in order', async (t) => {
  const gateway = await startGateway({ database, settings: { workers: 2, pool: 20 } });
  t.after(gateway.stop);
  const workers = gateway.workers();
  const gate = await closeGate(database);
  t.after(gate.open);
  const SQL = `select ${gate.zero}`;
  const url = `${gateway.url}/db?${encodeURIComponent(JSON.stringify({ SQL }))}`;
  const answers = Array.from({ length: 20 }, () => fetch(url).then((reply) => reply.status));
  const running = `select count(*) as n from information_schema.processlist
    where info = '${SQL}' and db = database()`;
  await eventually(
    'all are in flight',
    async () => Number((await database.query(running))[0]?.n) === 20,
  );
  process.kill(gateway.pid, 'SIGTERM');
  // One that comes in the very moment of the close may be answered a second later: it must not hold up those after it.
  let refused = false;
  const probe = () => {
    void isRefused(gateway.port).then((is) => {
      refused ||= is;
    });
    return refused;
  };
  await eventually('new connections are refused', probe, { everyMs: 1 });
  await eventually('the pidfile goes', () => !existsSync(gateway.pidfile));
  assert.equal(Number((await database.query(running))[0]?.n), 20, 'before anything has ended');
  await gate.open();
  assert.deepEqual(await Promise.all(answers), Array<number>(20).fill(200));
  await gone(gateway.pid);
  assert.ok(!workers.some(isAlive), 'workers are gone before their supervisor');
  assert.equal(Number((await database.query(running))[0]?.n), 0);
});

test('connections that no worker has accepted when a stop begins are answered', async (t) => {
  const [crowd, request] = [80, 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n'];
  const daemon = daemonFor(t, { workers: '2' });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const port = Number(daemon.address().split(':').at(-1));
  const [pid, workers] = [daemon.pid(), daemon.workers()];
  const connections: RawConnection[] = [];
  try {
    for (const worker of workers) freeze(worker);
    for (let opened = 0; opened < crowd; opened += 1) {
      const connection = await openRaw(port);
      connection.send(request);
      connections.push(connection);
    }
    await eventually('the kernel holds all', () => {
      const held = serverSockets(port).filter(({ unreadBytes }) => unreadBytes === request.length);
      return held.length === crowd;
    });
    process.kill(pid, 'SIGTERM');
    await eventually('the stop has begun', () => daemon.readLog().includes(' draining'));
    for (const worker of workers) signal(worker, 'SIGCONT');
    const replies = await Promise.all(connections.map((connection) => connection.reply()));
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
    await gone(pid);
  } finally {
    for (const worker of workers) signal(worker, 'SIGCONT');
    for (const { socket } of connections) socket.destroy();
  }
});

test('a stop while a worker reads the catalogue is no loss of a connection', async (t) => {
  let isAsked = false;
  const server = await startFakeMysql({
    answer: (_client, statement) => {
      isAsked ||= /information_schema/i.test(statement);
      return /information_schema/i.test(statement);
    },
  });
  t.after(server.stop);
  const gateway = await startGateway({ database: server.target, settings: { workers: 1 } });
  t.after(gateway.stop);
  await eventually('the catalogue is asked for', () => isAsked);
  process.kill(gateway.pid, 'SIGTERM');
  await gone(gateway.pid);
  assert.match(gateway.log(), / stopped /);
  assert.doesNotMatch(gateway.log(), / warn |\blost\b/);
});

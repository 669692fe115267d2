// A stop loses no connection that was established: what the kernel holds for the gateway is accepted before it closes.
// Must not know how a worker finds out.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw, type RawConnection } from '../../support/http.ts';
import { serverSockets } from '../../support/kernel-sockets.ts';
import { gone, isStopped, signal } from '../../support/processes.ts';

const daemon = createDaemon({ workers: '2' });
after(() => daemon.dispose());

const crowd = 80;
const request = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

test('connections that nobody has accepted when a stop begins are answered', async () => {
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const port = Number(daemon.address().split(':').at(-1));
  const [pid, workers] = [daemon.pid(), daemon.workers()];
  const connections: RawConnection[] = [];
  try {
    for (const worker of workers) signal(worker, 'SIGSTOP');
    await eventually('nobody accepts', () => workers.every(isStopped));
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

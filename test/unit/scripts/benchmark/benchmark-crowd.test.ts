// A crowd of connections: each one asks in turn, and failures are counted.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { openCrowd } from '../../../../scripts/benchmark/crowd.ts';

const request = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

async function serve(t: TestContext, listener: RequestListener) {
  const sockets = new Set<Socket>();
  const server = createServer(listener).on('connection', (socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

const answer: RequestListener = (_request, response) => {
  response.setHeader('Content-Length', 2).end('{}');
};

test('each connection sends once, on the open connection', async (t) => {
  const asked: Socket[] = [];
  const { port, sockets } = await serve(t, (message, response) => {
    asked.push(message.socket);
    answer(message, response);
  });
  const crowd = await openCrowd(port, 50);
  const { requests, errors } = await crowd.askAll(request);
  crowd.close();
  assert.deepEqual([requests, errors], [50, 0]);
  assert.equal(asked.length, 50);
  assert.equal(new Set(asked).size, 50);
  assert.equal(sockets.size, 50);
});

test('they send in turn until the time is over', async (t) => {
  const counts = new Map<Socket, number>();
  let nowMs = 0;
  const { port } = await serve(t, (message, response) => {
    counts.set(message.socket, (counts.get(message.socket) ?? 0) + 1);
    nowMs += 1;
    answer(message, response);
  });
  const crowd = await openCrowd(port, 32);
  // A request takes a millisecond, on a machine that is busy too.
  t.mock.method(performance, 'now', () => nowMs);
  const { requests, errors, timesMs } = await crowd.askFor(request, 0.3);
  t.mock.restoreAll();
  crowd.close();
  assert.equal(errors, 0);
  assert.equal(timesMs.length, requests);
  assert.ok(requests >= 300, `${requests}`);
  assert.equal(counts.size, 32);
});

test('a bad status and a lost connection are errors', async (t) => {
  const { port } = await serve(t, (message, response) => {
    if (message.url === '/lost') message.socket.destroy();
    else response.writeHead(503, { 'Content-Length': 0 }).end();
  });
  const crowd = await openCrowd(port, 8);
  assert.equal((await crowd.askAll(request)).errors, 8);
  assert.equal((await crowd.askAll(request.replace('/', '/lost'))).errors, 8);
  crowd.close();
});

test('a crowd that is refused is an error, not a smaller crowd', async () => {
  await assert.rejects(openCrowd(1, 3), /ECONNREFUSED/);
});

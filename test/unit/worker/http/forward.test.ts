// A reply that is passed back has all its headers; of a client which takes nothing of it the connection ends, whatever the other worker does.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { forwardRequest } from '../../../../src/worker/http/forward.ts';
import { Peers } from '../../../../src/worker/http/peers.ts';
import { eventually } from '../../../support/eventually.ts';
import { openRaw } from '../../../support/http.ts';
import { serveHttp } from '../../../support/http-server.ts';
import { createWorkspace } from '../../../support/workspace.ts';

/** More than all buffers on the way have. */
const length = 64 * 1024 ** 2;
/** A client that takes nothing is given up at the next look. */
const peers = new Peers({ stallMs: 1, sameHostStallMs: 1, unseenStallMs: 1 });
const origin = { client: '', httpVersion: '1.1', ageMs: 0 };

test('headers of one name are all passed back, and appear once if both workers set them', async () => {
  const workspace = createWorkspace('forward', () => {});
  const path = join(workspace.path, 'other.sock');
  const head =
    'HTTP/1.1 200 OK\r\nVary: Accept, Accept-Encoding\r\nVary: Origin\r\nX-Here: there\r\n';
  const other = createServer((socket) => {
    socket.end(`${head}Content-Length: 0\r\nConnection: close\r\n\r\n`);
  }).listen(path);
  const served = await serveHttp((request, response) => {
    response.addHeaders(['Vary', 'Origin', 'X-Here', 'there']);
    const forwarded = { request, body: Buffer.alloc(0), requestId: 'a', origin, timeoutMs: 60_000 };
    const unanswered = () => assert.fail('it has an answer');
    void forwardRequest(path, forwarded, response, { taken: () => {}, unanswered }, peers);
  });
  const connection = await openRaw(served.port);
  try {
    connection.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const { headers } = await connection.reply();
    const said = headers.filter(([name]) => /^(vary|x-here)$/i.test(name));
    assert.deepEqual(said, [
      ['Vary', 'Accept, Accept-Encoding'],
      ['Vary', 'Origin'],
      ['X-Here', 'there'],
    ]);
  } finally {
    connection.socket.destroy();
    served.end();
    other.close();
    workspace.remove();
  }
});

test('a client that takes nothing of its reply is given up', async (t) => {
  const workspace = createWorkspace('forward', () => {});
  const path = join(workspace.path, 'other.sock');
  const other = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`);
    socket.write(Buffer.alloc(length));
  }).listen(path);
  const served = await serveHttp((request, response) => {
    const forwarded = { request, body: Buffer.alloc(0), requestId: 'a', origin, timeoutMs: 60_000 };
    const unanswered = () => assert.fail('it has an answer');
    void forwardRequest(path, forwarded, response, { taken: () => {}, unanswered }, peers);
  });
  const connection = await openRaw(served.port);
  try {
    t.mock.timers.enable({ apis: ['setInterval'] });
    connection.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await connection.anything();
    connection.socket.pause();
    await eventually('it is given up', async () => {
      t.mock.timers.tick(60_000);
      const open = await promisify(served.http.server.getConnections.bind(served.http.server))();
      return open === 0;
    });
    assert.ok(connection.unread() < length);
  } finally {
    connection.socket.destroy();
    served.end();
    other.close();
    workspace.remove();
  }
});

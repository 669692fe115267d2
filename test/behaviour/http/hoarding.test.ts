// The promise that a client that sends much and finishes nothing holds no other up.
import assert from 'node:assert/strict';
import test from 'node:test';
import { readBody } from '../../../src/worker/http/request.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { type Handle, serveHttp } from '../../support/http-server.ts';

const host = 'Host: localhost\r\n';

const maxBufferedBytes = 8 * 1024 ** 2;
const requestBytes = 128 * 1024;

/** A server in this process, so that the test can count what it holds. */
const serve = (handle: Handle) =>
  serveHttp(handle, { maxUrlBytes: requestBytes, maxBufferedBytes });

for (const [what, start, end] of [
  ['paths', 'GET /', ''],
  ['bodies', `POST /db HTTP/1.1\r\n${host}Content-Length: ${requestBytes}\r\n\r\n`, ''],
  ['heads before a body', 'POST /', ` HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n`],
] as const) {
  test(`incomplete requests hold a bounded number of bytes together: ${what}`, async () => {
    const server = await serve((request, response) => {
      const answer = () => void response.end('ok');
      if (request.method === 'GET') answer();
      else readBody(request, response, requestBytes, { complete: answer, failed: answer });
    });
    try {
      const hoarders = await Promise.all(
        Array.from({ length: 150 }, () => openRaw(server.port, { tellsResets: false })),
      );
      const most = Math.floor(requestBytes * 0.9);
      for (const hoarder of hoarders) {
        hoarder.socket.on('error', () => {});
        hoarder.send(start);
        hoarder.send(Buffer.alloc(most, 'x'));
        hoarder.send(end);
      }
      let refused = 0;
      for (const hoarder of hoarders)
        void hoarder.reply().then(
          () => (refused += 1),
          () => {},
        );
      await eventually('some were refused', () => refused > 70);
      assert.ok(server.http.bufferedBytes <= maxBufferedBytes, `${server.http.bufferedBytes}`);
      const { status } = await exchange(server.port, `GET /ok HTTP/1.1\r\n${host}\r\n`);
      assert.equal(status, 200);
      for (const hoarder of hoarders) hoarder.socket.destroy();
      await eventually('nothing is held', () => server.http.bufferedBytes === 0);
    } finally {
      server.end();
    }
  });
}

test('a body that is not read any more counts for nothing, and the connection goes on behind it', async () => {
  const server = await serve((request, response) => {
    response.end(request.method);
  });
  try {
    const client = await openRaw(server.port);
    const bytes = 2 * maxBufferedBytes;
    client.send(`PUT /db HTTP/1.1\r\n${host}Content-Length: ${bytes}\r\n\r\n`);
    assert.equal(String((await client.reply()).body), 'PUT');
    client.send(Buffer.alloc(bytes));
    client.send(`GET /ok HTTP/1.1\r\n${host}\r\n`);
    assert.equal(String((await client.reply()).body), 'GET');
    assert.equal(server.http.bufferedBytes, 0);
    client.socket.destroy();
  } finally {
    server.end();
  }
});

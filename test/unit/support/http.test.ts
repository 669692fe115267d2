// The raw HTTP client that judges the gateway's replies: strict about framing, exact about the end.
import assert from 'node:assert/strict';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { exchange, openRaw } from '../../support/http.ts';

async function withServer(
  answer: (socket: Socket) => void,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  try {
    await use(typeof address === 'object' && address ? address.port : 0);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n';
const cases = [
  ['a body with its length', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc', 'length', 'abc'],
  ['a chunked body', `${chunked}2\r\nde\r\n0\r\n\r\n`, 'chunked', 'abcde'],
  ['a body that ends with its connection', 'HTTP/1.0 200 OK\r\n\r\nabc', 'close', 'abc'],
  ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', 'none', ''],
] as const;

for (const [what, text, framing, body] of cases) {
  test(`reads ${what}`, () =>
    withServer(
      (socket) => socket.end(text),
      async (port) => {
        const reply = await exchange(port, request);
        assert.deepEqual([reply.framing, reply.body.toString()], [framing, body]);
      },
    ));
}

const faults = [
  ['a chunked body without its last chunk', chunked, 'fin', 'ended-early'],
  ['a chunked body cut by a reset', chunked, 'reset', 'reset'],
  ['a body shorter than its length', cases[0][1].slice(0, -1), 'fin', 'ended-early'],
  ['a body ended by a reset instead of a close', cases[2][1], 'reset', 'reset'],
  ['a wrong chunk size', `${chunked}2;x=1\r\nde\r\n0\r\n\r\n`, 'fin', 'malformed'],
  ['two framings', chunked.replace('\r\n', '\r\nContent-Length: 3\r\n'), 'fin', 'malformed'],
] as const;

for (const [what, text, end, fault] of faults) {
  test(`reports ${what}`, () =>
    withServer(
      (socket) => {
        socket.write(text, () => (end === 'fin' ? socket.end() : socket.resetAndDestroy()));
      },
      (port) => assert.rejects(exchange(port, request), { name: 'HttpReplyError', fault }),
    ));
}

test('reads pipelined replies in order, then reports how the connection ended', () =>
  withServer(
    (socket) => socket.end(cases[0][1] + cases[1][1]),
    async (port) => {
      const connection = await openRaw(port);
      connection.send(request + request);
      assert.equal((await connection.reply()).body.toString(), 'abc');
      assert.equal((await connection.reply()).body.toString(), 'abcde');
      assert.equal(await connection.ended(), 'fin');
      connection.close();
    },
  ));

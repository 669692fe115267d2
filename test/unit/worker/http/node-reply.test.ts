// A whole reply that leaves in one write says what node's own way of writing it says, byte for byte.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { NodeReply } from '../../../../src/worker/http/node-reply.ts';
import { exchange, openRaw, type RawReply } from '../../../support/http.ts';

const headers = [
  'Content-Type',
  'text/plain',
  'X-Request-ID',
  'a/b',
  'Content-Length',
  '5',
] as const;
const head = 'Content-Type: text/plain\r\nX-Request-ID: a/b\r\nContent-Length: 5\r\n';
const more = ['Vary', 'Origin', 'X-Colon', 'a: b'] as const;
const body = 'h\u00e9llo';

type Serve = (reply: NodeReply) => void;
const ways: Readonly<Record<string, Serve>> = {
  '/node': (reply) => {
    reply.writeHead(200, [...headers]);
    reply.end(body, 'latin1');
  },
  '/whole': (reply) => reply.sendWhole(200, head, body),
  '/at-once': (reply) => {
    reply.isSentAtOnce = true;
    reply.sendWhole(200, head, body);
  },
  '/more': (reply) => {
    reply.addHeaders(more);
    reply.sendWhole(200, head, body);
  },
  '/more-at-once': (reply) => {
    reply.isSentAtOnce = true;
    reply.addHeaders(more);
    reply.sendWhole(200, head, body);
  },
};

async function serve(): Promise<{ port: number; replies: NodeReply[]; close: () => void }> {
  const replies: NodeReply[] = [];
  const server = createServer({ ServerResponse: NodeReply, keepAliveTimeout: 7_000 });
  server.on('request', ({ url }: IncomingMessage, reply: NodeReply) => {
    replies.push(reply);
    ways[url ?? '']?.(reply);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, replies, close };
}

const dateOf = ({ header }: RawReply): string => header('date') ?? '';

/** A reply as it left, and whether the connection ended behind it. */
async function ask(port: number, request: string) {
  const client = await openRaw(port);
  client.send(request);
  const reply = await client.reply();
  const { version, status, reason, body: bytes, framing } = reply;
  const headers = reply.headers.map(([name, value]) => [name, name === 'Date' ? '…' : value]);
  const ends = reply.header('connection') === 'close';
  if (ends) await client.ended();
  client.close();
  return { version, status, reason, headers, body: bytes.toString('latin1'), framing, ends };
}

for (const [who, version, more, ends] of [
  ['a client that stays', '1.1', 'Host: a\r\n', false],
  ['a client that goes', '1.1', 'Host: a\r\nConnection: close\r\n', true],
  ['a client of HTTP/1.0', '1.0', '', true],
  ['a client of HTTP/1.0 that stays', '1.0', 'Connection: keep-alive\r\n', false],
] as const) {
  test(`to ${who} the same bytes leave`, async (t) => {
    const { port, replies, close } = await serve();
    t.after(close);
    const request = (path: string) => `GET ${path} HTTP/${version}\r\n${more}\r\n`;
    const own = await ask(port, request('/node'));
    const whole = await ask(port, request('/whole'));
    assert.deepEqual(whole, own);
    assert.deepEqual(await ask(port, request('/at-once')), own);
    const added = await ask(port, request('/more'));
    assert.deepEqual(added.headers.slice(3, 5), [
      ['Vary', 'Origin'],
      ['X-Colon', 'a: b'],
    ]);
    assert.deepEqual(await ask(port, request('/more-at-once')), added);
    assert.equal(whole.ends, ends);
    assert.equal(whole.body, body);
    for (const { bodyBytes, headersSent, statusCode } of replies) {
      assert.deepEqual([bodyBytes, headersSent, statusCode], [5, true, 200]);
    }
  });
}

test('its date is now, in the form of HTTP', async (t) => {
  const { port, close } = await serve();
  t.after(close);
  const before = Math.floor(Date.now() / 1000) * 1000;
  const date = dateOf(await exchange(port, 'GET /whole HTTP/1.1\r\nHost: a\r\n\r\n'));
  assert.match(date, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
  assert.ok(Date.parse(date) >= before && Date.parse(date) <= Date.now(), date);
});

test('requests behind it on its connection are answered, and it is known to have left', async (t) => {
  const { port, replies, close } = await serve();
  t.after(close);
  const client = await openRaw(port);
  client.send('GET /whole HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3));
  for (let n = 0; n < 3; n += 1) assert.equal((await client.reply()).status, 200);
  client.close();
  assert.deepEqual(
    replies.map(({ writableFinished }) => writableFinished),
    [true, true, true],
  );
});

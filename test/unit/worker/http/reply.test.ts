// The bytes of a reply, however it is written, for each kind of client.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutgoingReply } from '../../../../src/worker/http/reply.ts';
import { eventually } from '../../../support/eventually.ts';
import { exchange, openRaw } from '../../../support/http.ts';
import { serveHttp } from '../../../support/http-server.ts';

const head = 'Content-Type: text/plain\r\nX-Request-ID: a/b\r\nContent-Length: 5\r\n';
const headers = ['Content-Type', 'text/plain', 'X-Request-ID', 'a/b', 'Content-Length', '5'];
const body = 'h\u00e9llo';

const ways: Readonly<Record<string, (reply: OutgoingReply) => void>> = {
  '/parts': (reply) => {
    reply.writeHead(200, headers);
    reply.write(Buffer.from(body.slice(0, 2), 'latin1'));
    reply.end(Buffer.from(body.slice(2), 'latin1'));
  },
  '/whole': (reply) => reply.sendWhole(200, head, body),
  '/added': (reply) => {
    reply.addHeaders(['Vary', 'Origin', 'X-Colon', 'a: b']);
    reply.sendWhole(200, head, body);
  },
  '/added-parts': (reply) => {
    reply.addHeaders(['Vary', 'Origin']);
    reply.addHeaders(['X-Colon', 'a: b', 'content-TYPE', 'replaced']);
    reply.writeHead(200, headers);
    reply.end(Buffer.from(body, 'latin1'));
  },
  '/stream': (reply) => {
    reply.writeHead(200, ['Content-Type', 'text/plain']);
    for (const part of ['a', 'bc', '']) reply.write(Buffer.from(part));
    reply.end('def');
  },
  '/short': (reply) => reply.end('short'),
  '/unregistered': (reply) => reply.sendWhole(460, head, body),
  '/nothing': (reply) => {
    reply.writeHead(204);
    reply.end();
  },
};

async function serve() {
  const replies: OutgoingReply[] = [];
  const handle = ({ url }: { readonly url: string }, reply: OutgoingReply) => {
    replies.push(reply);
    ways[url]?.(reply);
  };
  return { replies, ...(await serveHttp(handle, { keepaliveTimeoutMs: 7_000 })) };
}

/** A reply as it left, and whether the connection ended behind it. */
async function ask(port: number, request: string) {
  const client = await openRaw(port);
  client.send(request);
  const reply = await client.reply({ toHead: request.startsWith('HEAD') });
  const fields = reply.headers.map(([name, value]) => [name, name === 'Date' ? '…' : value]);
  const ends = reply.header('connection') === 'close';
  if (ends) assert.equal(await client.ended(), 'fin');
  assert.equal(client.unread(), 0);
  client.close();
  return { ...reply, headers: fields, body: reply.body.toString('latin1'), ends };
}

const clients = [
  ['a client that stays', '1.1', 'Host: a\r\n', false],
  ['a client that goes', '1.1', 'Host: a\r\nConnection: close\r\n', true],
  ['a client that goes with a list', '1.1', 'Host: a\r\nConnection: x, Close\r\n', true],
  ['a client that may change the protocol', '1.1', 'Host: a\r\nUpgrade: h2c\r\n', true],
  ['a client of HTTP/1.0', '1.0', '', true],
  ['a client of HTTP/1.0 that stays', '1.0', 'Connection: keep-alive\r\n', false],
  ['a client of HTTP/1.0 that says both', '1.0', 'Connection: keep-alive, close\r\n', true],
] as const;

for (const [who, version, more, ends] of clients) {
  test(`to ${who} the same bytes leave, written at once or in parts`, async (t) => {
    const { port, replies, end } = await serve();
    t.after(end);
    const request = (path: string) => `GET ${path} HTTP/${version}\r\n${more}\r\n`;
    const whole = await ask(port, request('/whole'));
    const last = ends
      ? [['Connection', 'close']]
      : [
          ['Connection', 'keep-alive'],
          ['Keep-Alive', 'timeout=7'],
        ];
    assert.deepEqual(
      [whole.version, whole.status, whole.body, whole.ends, whole.headers.slice(3)],
      ['1.1', 200, body, ends, [['Date', '…'], ...last]],
    );
    const { headers: own } = await ask(port, request('/parts'));
    assert.deepEqual(own, whole.headers);
    const added = await ask(port, request('/added'));
    assert.deepEqual(added.headers.slice(3, 5), [
      ['Vary', 'Origin'],
      ['X-Colon', 'a: b'],
    ]);
    assert.deepEqual((await ask(port, request('/added-parts'))).headers, added.headers);
    await eventually('all have left', () =>
      replies.every(({ writableFinished }) => writableFinished),
    );
    for (const { bodyBytes, headersSent, statusCode } of replies) {
      assert.deepEqual([bodyBytes, headersSent, statusCode], [5, true, 200]);
    }
  });
}

test('a status without a registered name has an empty reason', async (t) => {
  const { port, end } = await serve();
  t.after(end);
  const { status, reason } = await exchange(port, 'GET /unregistered HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.deepEqual([status, reason], [460, '']);
});

test('a body of unknown length leaves in chunks, and to HTTP/1.0 it ends with the connection', async (t) => {
  const { port, end } = await serve();
  t.after(end);
  const chunked = await ask(port, 'GET /stream HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.deepEqual([chunked.framing, chunked.body, chunked.ends], ['chunked', 'abcdef', false]);
  const old = await ask(port, 'GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n');
  assert.deepEqual([old.body, old.ends], ['abcdef', true]);
});

test('to HEAD no body leaves, and the head of a short text says its length', async (t) => {
  const { port, replies, end } = await serve();
  t.after(end);
  for (const path of ['/parts', '/stream', '/short', '/nothing']) {
    assert.equal((await ask(port, `HEAD ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)).ends, false);
  }
  assert.deepEqual(
    replies.map(({ bodyBytes }) => bodyBytes),
    [0, 0, 0, 0],
  );
  const short = await ask(port, 'GET /short HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.deepEqual([short.framing, short.body], ['length', 'short']);
  const nothing = await ask(port, 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n');
  const names = nothing.headers.map(([name]) => String(name).toLowerCase());
  assert.ok(!names.includes('content-length') && !names.includes('transfer-encoding'));
});

test('its date is now, in the form of HTTP', async (t) => {
  const { port, end } = await serve();
  t.after(end);
  const before = Math.floor(Date.now() / 1000) * 1000;
  const reply = await exchange(port, 'GET /whole HTTP/1.1\r\nHost: a\r\n\r\n');
  const date = reply.header('date') ?? '';
  assert.match(date, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
  assert.ok(Date.parse(date) >= before && Date.parse(date) <= Date.now(), date);
});

test('requests behind it on its connection are answered, and it is known to have left', async (t) => {
  const { port, replies, end } = await serve();
  t.after(end);
  const client = await openRaw(port);
  client.send('GET /whole HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3));
  for (let n = 0; n < 3; n += 1) assert.equal((await client.reply()).status, 200);
  client.close();
  await eventually('all have left', () =>
    replies.every(({ writableFinished }) => writableFinished),
  );
});

// The requests that the HTTP server passes to its handler, and those that it does not.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { clientTimeouts } from '../../../../src/worker/http/limits.ts';
import type { OutgoingReply } from '../../../../src/worker/http/reply.ts';
import { readBody } from '../../../../src/worker/http/request.ts';
import { eventually } from '../../../support/eventually.ts';
import { openRaw } from '../../../support/http.ts';
import { serveHttp } from '../../../support/http-server.ts';

test('requests behind one whose connection has ended are not run', async (t) => {
  const handled: string[] = [];
  const closed: string[] = [];
  const { port, end } = await serveHttp((request, reply) => {
    handled.push(request.url);
    reply.onceClosed(() => closed.push(request.url));
    request.socket.destroy();
  });
  t.after(end);
  const client = await openRaw(port, { tellsResets: false });
  client.send(
    ['/first', '/second'].map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''),
  );
  await client.ended();
  await eventually('it is over', () => closed.length === 1);
  assert.deepEqual([handled, closed], [['/first'], ['/first']]);
});

test('a body waits for its reader, in the order in which it was sent', async (t) => {
  let read = (): void => {};
  const { http, port, end } = await serveHttp((request, reply) => {
    if (request.method === 'GET') return reply.end('behind');
    read = () =>
      readBody(request, reply, 100, {
        complete: (body) => reply.end(body),
        failed: ({ message }) => assert.fail(message),
      });
  });
  t.after(end);
  const client = await openRaw(port);
  const post = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n';
  client.send(`${post}abc`);
  await eventually('its first half waits', () => http.bufferedBytes === post.length + 3);
  client.send('defGET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await eventually('all waits', () => http.bufferedBytes > post.length + 6);
  read();
  for (const text of ['abcdef', 'behind']) assert.equal(String((await client.reply()).body), text);
  assert.equal(http.bufferedBytes, 0);
});

test('a body that turns out to be malformed behind its reply ends the connection without another one', async (t) => {
  const { port, end } = await serveHttp((_request, reply) => reply.end('answered'));
  t.after(end);
  const client = await openRaw(port);
  client.send('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  assert.equal(String((await client.reply()).body), 'answered');
  client.send('no size\r\n');
  assert.equal(await client.ended(), 'fin');
  assert.equal(client.received(), '');
});

test('a client that sends more behind its last request gets the reply, and then the end', async (t) => {
  const { port, end } = await serveHttp((_request, reply) =>
    reply.sendWhole(200, 'Content-Length: 2\r\n', 'ok'),
  );
  t.after(end);
  const client = await openRaw(port);
  const last = 'GET / HTTP/1.0\r\n\r\n';
  client.send(last + 'GET /more HTTP/1.1\r\n'.repeat(10_000));
  assert.equal(String((await client.reply()).body), 'ok');
  client.send('and more');
  assert.equal(await client.ended(), 'fin');
});

test('a client that ends its side in the middle of a request gets 400', async (t) => {
  const { port, end } = await serveHttp((request, reply) =>
    readBody(request, reply, 100, { complete: () => reply.end(), failed: () => reply.end() }),
  );
  t.after(end);
  for (const half of ['GET / HT', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc']) {
    const client = await openRaw(port);
    client.socket.end(half);
    assert.equal((await client.reply()).status, 400);
    assert.equal(await client.ended(), 'fin');
  }
});

test('a stop does not wait for a client whose request came after it, its body in one piece', async (t) => {
  const replies: OutgoingReply[] = [];
  const { http, port, end } = await serveHttp((_request, response) => void replies.push(response));
  const accepted = once(http.server, 'connection');
  const client = await openRaw(port);
  await accepted;
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
  try {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const drained = http.drain(500, false, () => {});
    client.send(`${head}2\r\n{}\r\n0\r\n\r\n`);
    await eventually('it is there', () => replies.length === 1);
    t.mock.timers.tick(1_000);
    replies[0]?.end('late');
    assert.equal(String((await client.reply()).body), 'late');
    let hasEnded = false;
    const ended = client.ended().then(() => {
      hasEnded = true;
    });
    await eventually('the connection ends', () => {
      t.mock.timers.tick(500);
      return hasEnded;
    });
    await ended;
    await drained;
  } finally {
    end();
  }
});

test('a stop does not wait for a connection on which nothing has come, and answers a request that comes late', {
  timeout: 60_000,
}, async () => {
  const hour = 3_600_000;
  const timeouts = { ...clientTimeouts, headersMs: hour, requestMs: hour };
  const { http, port, end } = await serveHttp((_request, response) => response.end('answered'), {
    timeouts,
    keepaliveTimeoutMs: hour,
  });
  const clients = [];
  for (const _client of ['unused', 'late']) {
    const accepted = once(http.server, 'connection');
    clients.push(await openRaw(port));
    await accepted;
  }
  const [unused, late] = clients;
  try {
    const drained = http.drain(500, false, () => {
      late?.send('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    });
    assert.equal((await late?.reply())?.body.toString(), 'answered');
    await drained;
    assert.ok(['fin', 'reset'].includes(String(await unused?.ended())));
  } finally {
    for (const { socket } of clients) socket.destroy();
    end();
  }
});

/** A request whose reply is streamed: its head and a part have come, and the test has the rest. */
async function beginStream(port: number, replies: readonly OutgoingReply[], version: string) {
  const client = await openRaw(port);
  client.send(`GET / HTTP/${version}\r\nHost: localhost\r\n\r\n`);
  await eventually('it is handled', () => replies.length === 1);
  const [reply] = replies as [OutgoingReply];
  reply.writeHead(200, []);
  reply.write('a part');
  await eventually('the part has come', () => client.unread() > 0);
  return { client, reply };
}

test('a reply that ends with its connection is reset if a part is missing: at a stop, and if the client ends its side', async (t) => {
  for (const how of ['stop', 'half-close'] as const) {
    const replies: OutgoingReply[] = [];
    const { http, port, end } = await serveHttp((_request, reply) => void replies.push(reply));
    t.after(end);
    const { client } = await beginStream(port, replies, '1.0');
    if (how === 'stop') http.destroyConnections();
    else client.socket.end();
    assert.equal(await client.ended(), 'reset', how);
    assert.match(client.received(), /\r\n\r\na part$/);
  }
});

test('a stop answers a request behind a reply that has promised keep-alive before it', async (t) => {
  const replies: OutgoingReply[] = [];
  const { http, port, end } = await serveHttp((request, reply) => {
    if (request.url === '/next') reply.end('next');
    else replies.push(reply);
  });
  t.after(end);
  const { client, reply } = await beginStream(port, replies, '1.1');
  const drained = http.drain(500, false, () => {});
  const [first, second] = ['GET /next HTTP/1.1\r\nHo', 'st: localhost\r\n\r\n'];
  client.send(first);
  await eventually('it has come', () => http.bufferedBytes === first.length);
  reply.end();
  assert.equal((await client.reply()).header('connection'), 'keep-alive');
  client.send(second);
  const answered = await client.reply();
  assert.deepEqual([String(answered.body), answered.header('connection')], ['next', 'close']);
  await drained;
});

test('a stop gives a connection whose reply has promised keep-alive at least the whole grace', async (t) => {
  const replies: OutgoingReply[] = [];
  const { http, port, end } = await serveHttp((request, reply) => {
    if (request.url === '/next') reply.end('next');
    else replies.push(reply);
  });
  t.after(end);
  const { client, reply } = await beginStream(port, replies, '1.1');
  t.mock.timers.enable({ apis: ['setInterval'] });
  const drained = http.drain(500, false, () => {});
  const pass = async () => {
    t.mock.timers.tick(500);
    for (let n = 0; n < 3; n += 1) await turn();
  };
  await eventually('the listener is closed', () => !http.server.listening);
  await pass();
  reply.end();
  assert.equal((await client.reply()).header('connection'), 'keep-alive');
  await pass();
  client.send('GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n');
  assert.equal(String((await client.reply()).body), 'next');
  await drained;
});

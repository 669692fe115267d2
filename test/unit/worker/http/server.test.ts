// The requests that the HTTP server passes to its handler, and those that it does not.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { strictHeads } from '../../../../src/worker/http/head-form.ts';
import { clientTimeouts } from '../../../../src/worker/http/limits.ts';
import { allInternals } from '../../../../src/worker/http/node-internals.ts';
import { Peers } from '../../../../src/worker/http/peers.ts';
import type { OutgoingReply } from '../../../../src/worker/http/reply.ts';
import type { IncomingRequest } from '../../../../src/worker/http/request.ts';
import { HttpServer, type RequestHandler } from '../../../../src/worker/http/server.ts';
import { eventually } from '../../../support/eventually.ts';
import { openRaw } from '../../../support/http.ts';

const settings = {
  maxUrlBytes: 1000,
  heads: strictHeads,
  maxBufferedBytes: 64 * 1024 ** 2,
  keepaliveTimeoutMs: 1000,
  connections: { served: 10, reserved: 1 },
  timeouts: clientTimeouts,
  peers: new Peers(clientTimeouts),
  tls: null,
};

for (const [when, event] of [
  ['while its connection ends', null],
  ['after its connection has ended', 'close'],
] as const) {
  test(`a request that is read ${when} is not run`, async (t) => {
    const handled: IncomingRequest[] = [];
    const take: RequestHandler = (request) => {
      handled.push(request);
      return { requestId: 'none', closed: () => {} };
    };
    const http = new HttpServer(settings, take, allInternals);
    t.after(() => http.server.close());
    http.server.listen(0, '127.0.0.1');
    await once(http.server, 'listening');
    const client = await openRaw((http.server.address() as AddressInfo).port);
    client.send('GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const [request, response] = await once(http.server, 'request');
    const ended = Promise.all([once(request.socket, 'close'), once(response, 'close')]);
    if (event === null) {
      response.emit('close');
      request.socket.destroy();
    } else {
      request.socket.destroy();
      await ended;
    }
    http.server.emit('request', request, new ServerResponse(request));
    await ended;
    assert.equal(handled.length, 1);
    client.socket.destroy();
  });
}

test('a stop does not wait for a client whose request came after it, its body in one piece', async (t) => {
  const replies: OutgoingReply[] = [];
  const http = new HttpServer(
    { ...settings, keepaliveTimeoutMs: 60_000 },
    (_request, response) => {
      replies.push(response);
      return { requestId: 'none', closed: () => {} };
    },
    allInternals,
  );
  http.server.listen(0, '127.0.0.1');
  await once(http.server, 'listening');
  const { port } = http.server.address() as AddressInfo;
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
    http.destroyConnections();
  }
});

test('a stop does not wait for a connection on which nothing has come, and answers a request that comes late', {
  timeout: 60_000,
}, async () => {
  const hour = 3_600_000;
  const timeouts = { ...clientTimeouts, headersMs: hour, requestMs: hour };
  const http = new HttpServer(
    { ...settings, timeouts, keepaliveTimeoutMs: hour },
    (_request, response) => {
      response.end('answered');
      return { requestId: 'none', closed: () => {} };
    },
    allInternals,
  );
  http.server.listen(0, '127.0.0.1');
  await once(http.server, 'listening');
  const { port } = http.server.address() as AddressInfo;
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
    http.destroyConnections();
  }
});

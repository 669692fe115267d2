// Clients that are slow on purpose, in headers, body or reading, lose their connection in time; others notice nothing.
// Timeouts are handed in: those of every day would make this last minutes.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import mysql from 'mysql2';
import { clientTimeouts } from '../../../src/worker/http/limits.ts';
import { Peers } from '../../../src/worker/http/peers.ts';
import { readBody } from '../../../src/worker/http/request.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { type Handle, serveHttp } from '../../support/http-server.ts';

const timeouts = {
  headersMs: 1_500,
  requestMs: 1_800,
  stallMs: 1_500,
  sameHostStallMs: 1_500,
  unseenStallMs: 1_500,
  beyondLimitMs: 200,
  checkMs: 100,
};
/** For tests that are not about slow clients: a slow machine must not count as one. */
const patient = {
  ...timeouts,
  headersMs: 60_000,
  requestMs: 60_000,
  stallMs: 60_000,
  sameHostStallMs: 60_000,
};
/** For tests of the time for headers alone. */
const hasty = { ...patient, headersMs: timeouts.headersMs };
const served = 300;
const crowd = 100;

test('the timeouts that are tested are all that there are', () => {
  assert.deepEqual(Object.keys(clientTimeouts), Object.keys(timeouts));
});

const echo: Handle = (request, response) =>
  readBody(request, response, 1_000_000, {
    complete: (body) => response.end(`${body.length}`),
    failed: () => response.end('too long'),
  });

async function serve(
  t: TestContext,
  handle: Handle = echo,
  keepaliveTimeoutMs = 60_000,
  limits = timeouts,
) {
  const connections = { served, reserved: 16 };
  const peers = new Peers(limits);
  const settings = { keepaliveTimeoutMs, connections, timeouts: limits, peers };
  const { http, port, end } = await serveHttp(handle, settings);
  const accepted: Socket[] = [];
  http.server.on('connection', (socket: Socket) => accepted.push(socket));
  t.after(end);
  return { http, accepted, port };
}

/** A client that reads nothing and never closes, not even when the other side does. */
async function clutch(t: TestContext, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => void socket.destroy());
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  return socket;
}

/** Sends `start`, then a byte at a time for ever, on many connections. */
async function drip(t: TestContext, port: number, start: string, byte: string): Promise<void> {
  const slow = await Promise.all(Array.from({ length: crowd }, () => clutch(t, port)));
  for (const socket of slow) {
    socket.write(start);
    const timer = setInterval(() => socket.write(byte), 100);
    socket.once('close', () => clearInterval(timer));
  }
}

/** Others are answered until the slow ones are gone. */
async function othersAreServed(
  server: Awaited<ReturnType<typeof serve>>,
  slow = crowd,
): Promise<void> {
  const isGone = () => server.accepted.slice(0, slow).every((socket) => socket.destroyed);
  let answeredBeside = 0;
  await eventually('the slow ones are gone', async () => {
    const { status } = await exchange(server.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal(status, 200);
    if (!isGone()) answeredBeside += 1;
    return isGone();
  });
  assert.ok(answeredBeside > 0);
}

// Most wait for a timeout, and do nothing meanwhile: side by side.
describe('slow clients', { concurrency: true }, () => {
  test(`${crowd} clients that drip their headers are closed in time`, async (t) => {
    const server = await serve(t);
    await drip(t, server.port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ', 'a');
    await othersAreServed(server);
  });

  test(`${crowd} clients that drip their bodies are closed in time`, async (t) => {
    const server = await serve(t);
    await drip(t, server.port, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n', 'a');
    await othersAreServed(server);
  });

  // Fewer clients: the kernel takes megabytes of each reply before a request has to wait.
  test(`${crowd / 5} clients that take nothing of their replies are reset in time`, async (t) => {
    const reply = Buffer.alloc(8 * 1024 * 1024, 'x');
    const server = await serve(t, (request, response) =>
      response.end(request.url === '/big' ? reply : 'ok'),
    );
    const slow = await Promise.all(Array.from({ length: crowd / 5 }, () => clutch(t, server.port)));
    for (const socket of slow) socket.write('GET /big HTTP/1.1\r\nHost: a\r\n\r\n');
    await othersAreServed(server, crowd / 5);
  });

  test('a client that never sends anything is closed in time', async (t) => {
    const server = await serve(t);
    await clutch(t, server.port);
    await eventually('it is closed', () => server.accepted[0]?.destroyed);
  });

  test("a client of MySQL's, which waits for a greeting, gets an error that it can show", async (t) => {
    const { port } = await serve(t, echo, 60_000, hasty);
    const connection = mysql.createConnection({
      ...{ host: '127.0.0.1', port, user: 'app' },
      connectTimeout: 60_000,
    });
    t.after(() => connection.destroy());
    const [error] = (await once(connection, 'error')) as [{ errno: number; message: string }];
    assert.equal(error.errno, 1043);
    assert.match(error.message, /^This port speaks HTTP, not MySQL's protocol: .+ \/v1\/query/);
  });

  test('a client that has sent half a line gets a reply of HTTP', async (t) => {
    const { port } = await serve(t, echo, 60_000, hasty);
    const client = await openRaw(port);
    client.send('GET /');
    const reply = await client.reply();
    assert.equal(reply.status, 408);
    client.close();
  });

  test('a further request that never ends closes its connection', async (t) => {
    const server = await serve(t);
    const client = await openRaw(server.port);
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.reply();
    client.send('GET / HTTP/1.1\r\nHost:');
    assert.equal((await client.reply()).status, 408);
    await eventually('it is closed', () => server.accepted[0]?.destroyed);
    client.close();
  });

  test('an idle connection is closed after keepalive_timeout', async (t) => {
    const server = await serve(t, echo, 300);
    const client = await openRaw(server.port);
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.reply();
    assert.equal(await client.ended(), 'fin');
    client.close();
  });

  test('a client that pipelines without end is not read without end', async (t) => {
    let finish = () => {};
    const stays: Handle = (_request, response) => {
      finish = () => response.end('late');
    };
    const server = await serve(t, stays, 60_000, patient);
    const client = await clutch(t, server.port);
    const requests = `GET /${'a'.repeat(10_000)} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(5_000);
    client.write(requests);
    const readBytes = () => server.accepted[0]?.bytesRead ?? 0;
    await eventually('nothing more is read', () => server.accepted[0]?.isPaused());
    assert.ok(readBytes() < 500_000, `${readBytes()}`);
    assert.equal(server.http.inFlight, 1);
    finish();
    await eventually('the next one is begun', () => server.http.inFlight === 1);
  });

  test('a connection beyond the limit is counted apart and does not last', async (t) => {
    const seen: boolean[] = [];
    const answers: Handle = (_request, response, isBeyondLimit) => {
      seen.push(isBeyondLimit);
      response.end('ok');
    };
    const server = await serve(t, answers, 60_000, patient);
    const held = await Promise.all(Array.from({ length: served }, () => clutch(t, server.port)));
    const { header } = await exchange(server.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.equal(header('connection'), 'close');
    assert.deepEqual(seen, [true]);
    const silent = await openRaw(server.port);
    assert.equal(await silent.ended(), 'fin');
    silent.close();
    assert.equal(server.http.connections.refused, 2);
    assert.equal(held.length, served);
  });
});

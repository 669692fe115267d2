// The limits on bytes and time of a client that are seen from outside, each at its edge. messages.test.ts has those of a head.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { serverSockets } from '../../support/kernel-sockets.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 2, keepalive_timeout: '1s', statement_timeout: '5m' },
  { prepare: createGate },
);
const host = 'Host: localhost\r\n';
const head = `POST /db HTTP/1.1\r\n${host}Content-Type: application/json\r\n`;
const get = (sql: string) =>
  `GET /db?${encodeURIComponent(JSON.stringify({ SQL: sql }))} HTTP/1.1\r\n${host}\r\n`;
const maxRequestBytes = 1024 ** 2;

test('chunks of max_request_bytes together are a body, and a byte more is 413', async () => {
  const send = (bytes: number) => {
    const body = '{"SQL":"select 1"}'.padEnd(bytes, ' ');
    const chunks = [body.slice(0, 100_000), body.slice(100_000)];
    const framed = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
    return exchange(gateway.port, `${head}Transfer-Encoding: chunked\r\n\r\n${framed}0\r\n\r\n`);
  };
  assert.equal((await send(maxRequestBytes)).status, 200);
  const refused = await send(maxRequestBytes + 1);
  assert.equal(refused.status, 413);
  assert.equal(refused.header('connection'), 'close');
});

test('a URL of max_request_bytes is taken in pieces too, and a byte more is 414 before the head is whole', async () => {
  const send = async (bytes: number, rest: string) => {
    const client = await openRaw(gateway.port);
    const target = '/nothing?'.padEnd(bytes, 'x');
    client.send(`GET ${target.slice(0, 500_000)}`);
    client.send(`${target.slice(500_000)}${rest}`);
    const reply = await client.reply();
    client.close();
    return reply.status;
  };
  assert.equal(await send(maxRequestBytes, ` HTTP/1.1\r\n${host}\r\n`), 404);
  assert.equal(await send(maxRequestBytes + 1, ' HTTP/1.1\r\n'), 414);
});

test('requests of many bytes behind one that runs are left in the kernel, and all are answered', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  const client = await openRaw(gateway.port);
  client.send(get(`select ${gate.zero}`));
  await processlist.started('from gate');
  const count = 800;
  const bytes = `GET /nothing?${'x'.repeat(10_000)} HTTP/1.1\r\n${host}\r\n`.repeat(count);
  client.send(bytes);
  const unread = () =>
    serverSockets(gateway.port).find(({ clientPort }) => clientPort === client.socket.localPort)
      ?.unreadBytes ?? 0;
  await eventually(
    'bytes wait in the kernel',
    () => unread() > 0 && client.socket.writableLength > 0,
  );
  const before = client.socket.writableLength;
  assert.equal((await exchange(gateway.port, get('select 1'))).status, 200);
  assert.equal(client.socket.writableLength, before);
  await gate.open();
  assert.equal((await client.reply()).status, 200);
  for (let n = 0; n < count; n += 1) assert.equal((await client.reply()).status, 404);
  client.close();
});

test('incomplete requests hold at most 64 MiB together, and the largest are refused first', async () => {
  const body = Buffer.alloc(0.9 * maxRequestBytes, ' ');
  const start = `${head}Content-Length: ${maxRequestBytes}\r\n\r\n`;
  const small = await openRaw(gateway.port);
  small.send(`${head}Content-Length: 18\r\n\r\n{"SQL":`);
  const hoarders = await Promise.all(
    Array.from({ length: 100 }, () => openRaw(gateway.port, { tellsResets: false })),
  );
  const refused: number[] = [];
  for (const hoarder of hoarders) {
    hoarder.socket.on('error', () => {});
    hoarder.send(start);
    hoarder.send(body);
    void hoarder.reply().then(
      ({ status }) => refused.push(status),
      () => {},
    );
  }
  await eventually('enough are refused', () => refused.length * body.length > 26 * 1024 ** 2);
  assert.deepEqual([...new Set(refused)], [503]);
  assert.equal((await exchange(gateway.port, get('select 1'))).status, 200);
  small.send('"select 1"}');
  assert.equal((await small.reply()).status, 200);
  small.close();
  for (const { socket } of hoarders) socket.destroy();
});

test('requests that wait to be decoded hold at most 64 MiB together, and those beyond are refused', async () => {
  const numbers = '123456789012,'.repeat(0.07 * maxRequestBytes);
  const body = `{"sql":"select 1","params":[${numbers}1]}`;
  const start = `POST /v1/query HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  const clients = await Promise.all(
    Array.from({ length: 100 }, () =>
      openRaw(gateway.port, { tellsResets: false, timeoutMs: 300_000 }),
    ),
  );
  // Sixty wait for their last byte, so that the others arrive while those are decoded.
  const [first, second] = [clients.slice(0, 60), clients.slice(60)];
  for (const { send } of first) send(start + body.slice(0, -1));
  await eventually('they are in the worker', () => {
    const sockets = serverSockets(gateway.port);
    return (
      first.every(({ socket }) => socket.writableLength === 0) &&
      sockets.every(({ unreadBytes }) => unreadBytes === 0)
    );
  });
  for (const { send } of first) send('}');
  for (const { send } of second) send(start + body);
  const replies = await Promise.all(clients.map(({ reply }) => reply()));
  const refused = replies.filter(({ status }) => status === 503);
  assert.ok(refused.length > 0 && refused.length < 40, `${refused.length}`);
  for (const reply of refused) assert.match(String(reply.body), /wait to be decoded/);
  assert.deepEqual([...new Set(replies.map(({ status }) => status))].sort(), [413, 503]);
  for (const { close } of clients) close();
});

test('an idle connection is kept for keepalive_timeout, and then ends', async () => {
  const client = await openRaw(gateway.port);
  const fromMs = performance.now();
  client.send(get('select 1'));
  const reply = await client.reply();
  assert.equal(reply.header('keep-alive'), 'timeout=1');
  assert.equal(await client.ended(), 'fin');
  assert.ok(performance.now() - fromMs >= 1_000);
  client.close();
});

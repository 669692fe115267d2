// Node's internals and the documented ways in their place say the same; a check of them finds all on the nodes that are supported.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import {
  allInternals,
  hasByteCounts,
  type OnRead,
  ReadBuffer,
  takenBytes,
} from '../../../../src/worker/http/node-internals.ts';
import { checkNodeInternals } from '../../../../src/worker/http/node-internals-check.ts';
import { eventually } from '../../../support/eventually.ts';

/** Both ends of a connection; the second was accepted, and given to `accept` before it read anything. */
async function openPair(accept: (socket: Socket) => void): Promise<[Socket, Socket]> {
  const server = createServer(accept).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await once(server, 'connection')) as [Socket];
  server.close();
  return [client, socket];
}

for (const [way, isShared] of [
  ['one buffer', true],
  ['a buffer each', false],
] as const) {
  test(`sockets that are read into ${way} read the sent bytes, each its own`, async () => {
    const read = new Map<Socket, Buffer[]>();
    const keep: OnRead = function (length, bytes) {
      read.get(this)?.push(Buffer.from(bytes.subarray(0, length)));
      return true;
    };
    const reads = new ReadBuffer(keep, isShared);
    const accept = (socket: Socket) => {
      read.set(socket, []);
      reads.read(socket);
    };
    const pairs = await Promise.all([openPair(accept), openPair(accept)]);
    const sent = pairs.map((_, n) => Buffer.alloc(300_000, `${n}: some text`));
    for (const [n, [client]] of pairs.entries()) client.end(sent[n] ?? '');
    await Promise.all(pairs.map(([, socket]) => once(socket, 'close')));
    const received = pairs.map(([, socket]) => Buffer.concat(read.get(socket) ?? []));
    for (const [n, bytes] of received.entries()) assert.ok(bytes.equals(sent[n] ?? bytes), `${n}`);
    const listeners = pairs.map(([, socket]) => socket.listenerCount('data'));
    assert.deepEqual(listeners, isShared ? [0, 0] : [1, 1]);
  });
}

for (const isKnown of [true, false]) {
  test(`bytes that a peer has taken are counted, waiting ones are not, ${isKnown ? 'with' : 'without'} libuv's counts`, async () => {
    const [client, socket] = await openPair((accepted) => {
      if (isKnown) return;
      const { _handle } = accepted as unknown as { _handle: object };
      Object.defineProperty(_handle, 'writeQueueSize', { value: undefined });
    });
    assert.equal(hasByteCounts(socket), isKnown);
    const [piece, pieces] = [Buffer.alloc(256 * 1024), 128];
    for (let n = 0; n < pieces; n += 1) socket.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(takenBytes(socket) < piece.length * pieces, `${takenBytes(socket)}`);
    client.resume();
    await eventually('all is taken', () => takenBytes(socket) === piece.length * pieces);
    socket.destroy();
    await once(client, 'close');
  });
}

test('the check finds all of them, again and again', async () => {
  const whole = { internals: allInternals, replaced: [] };
  assert.deepEqual(await checkNodeInternals(), whole);
  assert.deepEqual(await checkNodeInternals(), whole);
});

// A client's acknowledgements are seen at once, over TCP, by IPv4 and IPv6, and over TLS. For other sockets the kernel's report has to do.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type ListenOptions, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { clientTimeouts } from '../../../../src/worker/http/limits.ts';
import { type Peer, Peers, takenBytes } from '../../../../src/worker/http/peers.ts';
import { createAuthority } from '../../../support/certificates.ts';
import { eventually } from '../../../support/eventually.ts';
import { createWorkspace } from '../../../support/workspace.ts';

/** More than all buffers on the way have. */
const length = 64 * 1024 ** 2;

const piece = Buffer.alloc(64 * 1024);

function write(socket: Socket): void {
  socket.on('error', () => {});
  for (let sent = 0; sent < length; sent += piece.length) socket.write(piece);
}

/** Both ends of a connection with `length` bytes that nothing reads. */
async function fill(t: TestContext, place: ListenOptions) {
  const server = createServer(write);
  server.listen(place);
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const address = server.address();
  const client =
    typeof address === 'string' || address === null
      ? connect({ path: String(place.path) })
      : connect({ port: address.port, host: String(place.host) });
  client.pause();
  const [socket] = await accepted;
  t.after(() => {
    client.destroy();
    socket.destroy();
    server.close();
  });
  await stopped(socket);
  return { client, socket };
}

/** The same over TLS. */
async function fillOverTls(t: TestContext) {
  const workspace = createWorkspace('peers', () => {});
  t.after(workspace.remove);
  const { cert, key } = createAuthority(workspace.path).issue('server');
  const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, write);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'secureConnection') as Promise<[Socket]>;
  const { port } = server.address() as AddressInfo;
  const client = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  client.pause();
  const [socket] = await accepted;
  t.after(() => {
    client.destroy();
    socket.destroy();
    server.close();
  });
  await stopped(socket);
  return { client, socket };
}

/** Resolves when the kernel takes no more. */
async function stopped(socket: Socket): Promise<void> {
  let taken = -1;
  await eventually('the kernel takes no more', () => {
    const before = taken;
    taken = takenBytes(socket);
    return taken > 0 && taken === before;
  });
}

/** Reads this many bytes, and no more. */
async function readBytes(client: Socket, count: number): Promise<void> {
  let left = count;
  await eventually('it has read', () => {
    left -= (client.read() as Buffer | null)?.length ?? 0;
    return left <= 0;
  });
}

async function settled(peer: Peer): Promise<number> {
  let last = -1;
  await eventually('nothing is acknowledged any more', async () => {
    const before = last;
    last = (await peer.acknowledged()).bytes;
    return last === before;
  });
  return last;
}

const ways = {
  'over IPv4': (t: TestContext) => fill(t, { host: '127.0.0.1', port: 0 }),
  'over IPv6': (t: TestContext) => fill(t, { host: '::1', port: 0 }),
  'over TLS': fillOverTls,
};

for (const [way, connected] of Object.entries(ways)) {
  test(`a client ${way} that reads a part is seen before the kernel takes more`, async (t) => {
    const { client, socket } = await connected(t);
    const peer = new Peers(clientTimeouts).of(socket);
    // The kernel takes more once a third of its buffer is free, and changes the buffer's size as it likes: not every try shows it.
    await eventually('progress is seen while the kernel takes nothing', async () => {
      const before = await settled(peer);
      const takenBefore = takenBytes(socket);
      await readBytes(client, 256 * 1024);
      await eventually('it is seen', async () => {
        const { bytes, isExact } = await peer.acknowledged();
        return isExact && bytes > before;
      });
      return takenBytes(socket) === takenBefore;
    });
    assert.equal(peer.maxStillMs(true), 130_000);
  });
}

test('over a unix socket only the kernel can report it', async (t) => {
  const workspace = createWorkspace('peers', () => {});
  t.after(workspace.remove);
  const { client, socket } = await fill(t, { path: join(workspace.path, 'socket') });
  const peer = new Peers(clientTimeouts).of(socket);
  const before = await peer.acknowledged();
  assert.deepEqual(before, { bytes: takenBytes(socket), isExact: false });
  await readBytes(client, 1024 ** 2);
  await eventually('it is seen', async () => (await peer.acknowledged()).bytes > before.bytes);
});

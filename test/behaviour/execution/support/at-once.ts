// Requests that a worker finds all in one turn of its loop: it is stopped until the kernel holds every byte of them.
import assert from 'node:assert/strict';
import { createReply, type Reply } from '../../../support/ask.ts';
import { eventually } from '../../../support/eventually.ts';
import type { Gateway } from '../../../support/gateway.ts';
import { openRaw, type RawConnection } from '../../../support/http.ts';
import { serverSockets } from '../../../support/kernel-sockets.ts';
import { isStopped, signal } from '../../../support/processes.ts';

/** A pipeline that is not in use gives its sessions back after half a second: what `prepare` has done may not hold for longer. */
const soon = { everyMs: 1 };

/**
 * Sends all requests by POST /db, each on a connection that the gateway's only worker knows already. The worker finds them in the order of
 * `requests`. Resolves to the replies in the same order, once the worker goes on. `prepare` runs at the last moment before the worker is
 * stopped.
 */
export async function askAtOnce(
  gateway: Gateway,
  requests: readonly object[],
  prepare: () => Promise<void> = async () => {},
): Promise<readonly Promise<Reply>[]> {
  const [worker = 0, ...others] = gateway.workers();
  assert.deepEqual(others, [], 'one worker is to find them all');
  const connections = await Promise.all(requests.map(() => openRaw(gateway.port)));
  for (const connection of connections) {
    await makeKnown(connection);
  }
  await prepare();
  await forgetLast(gateway);
  signal(worker, 'SIGSTOP');
  try {
    await eventually('the worker stands still', () => isStopped(worker), soon);
    const sent = new Map<number | undefined, number>();
    for (const [at, connection] of connections.entries()) {
      const bytes = format(requests[at]);
      sent.set(connection.socket.localPort, bytes.length);
      connection.send(bytes);
    }
    const haveArrived = () => {
      const arrived = serverSockets(gateway.port).filter(
        ({ clientPort, unreadBytes }) => sent.get(clientPort) === unreadBytes,
      );
      return arrived.length === requests.length;
    };
    await eventually('all bytes have arrived', haveArrived, soon);
  } finally {
    signal(worker, 'SIGCONT');
  }
  return connections.map(receive);
}

/** Makes the worker accept the connection and answer a request on it. */
async function makeKnown(connection: RawConnection): Promise<void> {
  connection.send('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await connection.reply();
}

/**
 * epoll keeps a socket that it has just reported in its list of ready sockets until the next call: the socket that was served last would
 * come first. A request on another connection makes the worker call epoll again.
 */
async function forgetLast(gateway: Gateway): Promise<void> {
  const connection = await openRaw(gateway.port);
  await makeKnown(connection);
  connection.socket.destroy();
}

function format(request: object | undefined): Buffer {
  const body = Buffer.from(JSON.stringify(request));
  const head = `POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

async function receive(connection: RawConnection): Promise<Reply> {
  try {
    const { status, headers, body } = await connection.reply();
    const named = headers.map(([name, value]) => [name.toLowerCase(), value]);
    return createReply(status, Object.fromEntries(named), body);
  } finally {
    connection.socket.destroy();
  }
}

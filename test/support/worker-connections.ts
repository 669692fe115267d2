// Connections of which it is known which worker has accepted them: what comes on one must be passed on to have it at another.
import assert from 'node:assert/strict';
import type { NetConnectOpts } from 'node:net';
import { eventually } from './eventually.ts';
import { openRaw, type RawConnection } from './http.ts';

/** One of them. The caller must destroy its socket. */
export type WorkerConnection = RawConnection & {
  /** The same for all connections of a worker: what it begins its requests' ids with. */
  readonly worker: string;
};

/** A request as bytes. @param body as JSON; none by default */
export function formatRequest(
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): string {
  const text = body === undefined ? '' : JSON.stringify(body);
  const own = { Host: 'localhost', 'Content-Type': 'application/json', ...headers };
  const lines = Object.entries(own).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${path} HTTP/1.1\r\n${lines.join('')}`;
  return `${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
}

/** Opens a connection to another worker than those. Rejects if none accepts one in 30 s. */
export function openBeside(
  target: number | NetConnectOpts,
  others: readonly string[] = [],
): Promise<WorkerConnection> {
  const open = async () => {
    const connection = await openRaw(target);
    connection.send(formatRequest('GET', '/nothing'));
    const reply = await connection.reply();
    const [worker = ''] = (reply.header('x-request-id') ?? '').split('-');
    if (!others.includes(worker)) return { ...connection, worker };
    connection.socket.destroy();
    return null;
  };
  return eventually('a connection of another worker', open, { everyMs: 1 });
}

/** Opens a connection to each of this many workers. */
export async function openAtEach(
  target: number | NetConnectOpts,
  count: number,
): Promise<readonly WorkerConnection[]> {
  const all: WorkerConnection[] = [];
  while (all.length < count) {
    all.push(
      await openBeside(
        target,
        all.map(({ worker }) => worker),
      ),
    );
  }
  return all;
}

/** Begins a transaction, which the connection's worker has from then on; its token. */
export async function beginAt(
  { send, reply }: RawConnection,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  send(formatRequest('POST', '/v1/transaction', {}, headers));
  const { status, body } = await reply();
  assert.equal(status, 201, body.toString());
  return JSON.parse(body.toString()).transaction;
}

// A long request with short ones behind it, so that a worker that decides the long one in pieces could begin the short ones first.
import { eventually } from '../../../support/eventually.ts';
import type { RawConnection, RawReply } from '../../../support/http.ts';
import { serverSockets } from '../../../support/kernel-sockets.ts';

/** A statement whose request is long enough for a worker to decide it in pieces. It inserts 1 into `notes`. */
const ones = '1,'.repeat(200_000);
export const longInsert = `insert into notes (who) select 1 from dual where 1 in (${ones}1)`;

/** Sends one request on each connection: the later ones come right behind the last byte of the first. Resolves to their replies. */
export async function sendBehind(
  port: number,
  connections: readonly RawConnection[],
  requests: readonly string[],
): Promise<readonly RawReply[]> {
  const [first] = connections;
  const [long = ''] = requests;
  first?.send(long.slice(0, -1));
  await eventually('all but its last byte is read', () => {
    const own = serverSockets(port).find(
      ({ clientPort }) => clientPort === first?.socket.localPort,
    );
    return first?.socket.writableLength === 0 && own?.unreadBytes === 0;
  });
  first?.send(long.slice(-1));
  for (const [at, connection] of connections.entries()) {
    if (at > 0) connection.send(requests[at] ?? '');
  }
  return Promise.all(connections.map((connection) => connection.reply()));
}

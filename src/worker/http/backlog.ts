// Closes a listening socket that no other process has. Connections that the kernel holds and the server has not accepted would end with it.
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { backlog, limitBacklog } from '../../shared/process/listening-socket.ts';
import { type Ends, isEstablished } from '../../shared/process/tcp-table.ts';

/** Under a load in which connections come in each turn of the event loop, the socket is closed after this time: a stop has an end. */
const boundMs = 1000;
/** The fewest connections that fill the queue. */
const guardCount = 2;

/**
 * Calls `close` when the kernel holds no connection for the server that was not accepted, or after a second. Polling is level-triggered:
 * if a turn of the event loop accepts no connection, there was none.
 */
export function whenBacklogIsEmpty(server: Server, close: () => void): void {
  const deadline = performance.now() + boundMs;
  // The first check ends a turn of which nothing is known.
  let accepted = 1;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count).on('drop', count);
  const end = () => {
    server.off('connection', count).off('drop', count);
    close();
  };
  const check = () => {
    if (performance.now() > deadline) return end();
    const wasEmpty = accepted === 0;
    accepted = 0;
    if (wasEmpty) closeBehindGuards(server, end, () => setImmediate(check));
    else setImmediate(check);
  };
  setImmediate(check);
}

/**
 * Clients can connect between the kernel's answer and the close. So connections of our own are put into the queue until it is full, for it
 * has room for two while this lasts. The kernel then does not answer further clients, which ask again a second later, and are refused or
 * find a successor. Connecting over loopback is over when connect(2) returns. Everything happens in one turn of the event loop, in which
 * nothing is accepted.
 */
function closeBehindGuards(server: Server, close: () => void, repeat: () => void): void {
  const address = server.address();
  if (address === null || typeof address === 'string' || !limitBacklog(server, guardCount - 1)) {
    close();
    return;
  }
  const { port } = address;
  const host = hostOf(address);
  const guards = Array.from({ length: guardCount }, () => connect({ port, host }));
  for (const guard of guards) guard.on('error', () => {});
  // Node connects in a tick of its own, before this one.
  process.nextTick(() => {
    if (guards.every((guard) => isEstablished(endsOf(guard, port, host)))) {
      close();
    } else {
      // A client was first, and is to be accepted.
      limitBacklog(server, backlog);
      repeat();
    }
    for (const guard of guards) guard.destroy();
  });
}

/** The address at which a server can be reached from its own machine. */
function hostOf({ address, family }: AddressInfo): string {
  if (family === 'IPv6') return address === '::' ? '::1' : address;
  return address === '0.0.0.0' ? '127.0.0.1' : address;
}

/** A socket that connects does not tell its peer yet. */
function endsOf(
  { localAddress, localPort }: Socket,
  remotePort: number,
  remoteAddress: string,
): Ends {
  return { localAddress, localPort, remoteAddress, remotePort };
}

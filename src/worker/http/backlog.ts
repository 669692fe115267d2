// Closing a listening socket that nobody else has: connections that the kernel holds and nobody has accepted end with it.
// Must not know what is served.
import { connect, type Server, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { backlog, limitBacklog } from '../../shared/process/listening-socket.ts';

/** Under a load that leaves no turn empty it is closed all the same: a stop has an end. */
const boundMs = 1000;

/**
 * Calls `close` when the kernel holds no connection for the server that was not accepted, or after a second. Polling is
 * level-triggered: a turn of the event loop that brings no connection found none.
 */
export function whenBacklogIsEmpty(server: Server, close: () => void): void {
  const deadline = performance.now() + boundMs;
  // The first look ends a turn of which nothing is known.
  let accepted = 1;
  const count = () => {
    accepted += 1;
  };
  server.on('connection', count).on('drop', count);
  const end = () => {
    server.off('connection', count).off('drop', count);
    close();
  };
  const look = () => {
    if (performance.now() > deadline) return end();
    const wasEmpty = accepted === 0;
    accepted = 0;
    if (wasEmpty) closeBehindGuard(server, end, () => setImmediate(look));
    else setImmediate(look);
  };
  setImmediate(look);
}

/**
 * Between the kernel's answer and the close others may connect. So a connection of our own is put into the queue, which has
 * room for one while this lasts: the kernel does not answer whoever comes then, who asks again a second later and is
 * refused, or finds a successor. Connecting over loopback is over when connect(2) returns. All in one turn: nobody here accepts.
 */
function closeBehindGuard(server: Server, close: () => void, repeat: () => void): void {
  const address = server.address();
  if (address === null || typeof address === 'string' || !limitBacklog(server, 0)) {
    close();
    return;
  }
  const isIPv6 = address.family === 'IPv6';
  const anywhere = isIPv6 ? '::' : '0.0.0.0';
  const loopback = isIPv6 ? '::1' : '127.0.0.1';
  const host = address.address === anywhere ? loopback : address.address;
  const guard = connect({ port: address.port, host });
  guard.on('error', () => {});
  // Node connects in a tick of its own, before this one.
  process.nextTick(() => {
    if (isConnected(guard)) {
      close();
    } else {
      // Somebody else was first, and is to be accepted.
      limitBacklog(server, backlog);
      repeat();
    }
    guard.destroy();
  });
}

type Bare = { readonly _handle?: { getpeername?(into: object): number } | null };

/** Node itself learns of it in a later turn, in which the server would accept. */
function isConnected(socket: Socket): boolean {
  return (socket as unknown as Bare)._handle?.getpeername?.({}) === 0;
}

// Ends a connection so that nobody takes what was sent for whole.
// Must not know why.
import type { Socket } from 'node:net';
import { transportOf } from './node-internals.ts';

/**
 * Resets a client's connection (RST). Where all was sent and the FIN is on its way there is nothing to
 * take back, and libuv would refuse the reset and leave the handle open for ever: then it just closes. So does a unix
 * socket, which knows no RST (node throws for it, and for TLS).
 */
export function resetConnection(socket: Socket | null): void {
  if (socket === null) return;
  const isSent = socket.writableEnded && socket.writableLength === 0;
  const transport = transportOf(socket);
  if (!isSent && transport?.localPort !== undefined) transport.resetAndDestroy();
  socket.destroy();
}

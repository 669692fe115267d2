// Ends a connection so that nobody takes what was sent for whole.
// Must not know why.
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/**
 * Where TLSSocket keeps the accepted socket that it speaks on, as of Node 20 to 24; documented nowhere. Without it the
 * connection is closed, not reset: TLS's own end is missing then, which most clients notice.
 */
type Wrapping = { readonly _parent?: Socket };

/**
 * Resets a client's connection (RST). Where all was sent and the FIN is on its way there is nothing to
 * take back, and libuv would refuse the reset and leave the handle open for ever: then it just closes. So does a unix
 * socket, which knows no RST (node throws for it, and for TLS).
 */
export function resetConnection(socket: Socket | null): void {
  if (socket === null) return;
  const isSent = socket.writableEnded && socket.writableLength === 0;
  const transport = socket instanceof TLSSocket ? (socket as Wrapping)._parent : socket;
  if (!isSent && transport?.localPort !== undefined) transport.resetAndDestroy();
  socket.destroy();
}

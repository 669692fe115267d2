// Ends a connection so that nobody takes what was sent for whole.
// Must not know why.
import type { Socket } from 'node:net';

/**
 * Resets a client's connection (RST). Where all was sent and the FIN is on its way there is nothing to
 * take back, and libuv would refuse the reset and leave the handle open for ever: then it just closes.
 */
export function resetConnection(socket: Socket | null): void {
  if (socket === null) return;
  if (socket.writableEnded && socket.writableLength === 0) socket.destroy();
  else socket.resetAndDestroy();
}

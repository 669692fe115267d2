// The two places where Node's legacy handle of a listening server is touched: its descriptor, and listening on one.
// Must not know who owns the socket.
import type { Server } from 'node:net';

/** Connections the kernel keeps while nobody accepts: long enough for a worker to be replaced under load. */
export const backlog = 4096;

// Legacy names in Node's net.js, unchanged since 0.6; @types/node does not have them.
type Bare = {
  readonly _handle: { readonly fd: number } | null;
  readonly _listen2: (address: null, port: null, type: null, backlog: number, fd: number) => void;
};

/** The descriptor of a listening server; it stays the server's. */
export function descriptorOf(server: Server): number {
  const fd = (server as unknown as Bare)._handle?.fd ?? -1;
  if (fd < 0) throw new Error('the server has no descriptor');
  return fd;
}

/**
 * Makes a server accept on an inherited listening descriptor, without asking the cluster's primary: `listen({ fd })`
 * does ask it in a worker, and fails with EINVAL. Emits `listening` or `error`.
 */
export function listenOn(server: Server, fd: number): void {
  (server as unknown as Bare)._listen2(null, null, null, backlog, fd);
}

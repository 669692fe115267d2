// The listening socket as a descriptor: found out where it is bound, and listened on where it was inherited.
// Must not know who owns the socket.
import { type Server, Socket } from 'node:net';

/** Connections the kernel keeps while nobody accepts: long enough for a worker to be replaced under load. */
export const backlog = 4096;

// Legacy names in Node's net.js, unchanged since 0.6; @types/node does not have them.
type Bare = {
  readonly _handle: { readonly fd?: number; listen?(backlog: number): number } | null;
  readonly _listen2?: (address: null, port: null, type: null, backlog: number, fd: number) => void;
};

/**
 * The descriptor of a listening server; it stays the server's. Throws where node keeps it elsewhere, and nothing starts:
 * nothing that is documented tells the descriptor of a socket that node has bound.
 */
export function descriptorOf(server: Server): number {
  const fd = (server as unknown as Bare)._handle?.fd ?? -1;
  if (fd < 0) throw new Error(`Node ${process.version} does not tell a server's descriptor`);
  return fd;
}

/**
 * Makes a server accept on an inherited listening descriptor, without asking the cluster's primary. Emits `listening` or
 * `error`; throws where node offers no way.
 *
 * TCP: by a socket around the descriptor, which is documented. A unix socket: by node's internals, since node then looks
 * at the socket's descriptor only, and asks the primary, as it does with `listen({ fd })`, also where that is `exclusive`
 * (Node 20.20: ENOTSOCK, 22.23 and 24.21: EINVAL). What the primary could hand out by its own number of the descriptor
 * it would close with its last worker, and nobody could listen again. So there is no documented way for a unix socket.
 */
export function listenOn(server: Server, fd: number, kind: 'tcp' | 'unix'): void {
  if (kind === 'tcp') {
    server.listen(new Socket({ fd }), backlog);
    return;
  }
  const bare = server as unknown as Bare;
  if (bare._listen2 === undefined) {
    throw new Error(`Node ${process.version} does not let a worker listen on a unix socket`);
  }
  bare._listen2(null, null, null, backlog, fd);
}

/**
 * Changes how many connections the kernel keeps for a listening server, one more than `most`, by listen(2) on a socket that
 * listens already (listen(2), Linux). False where node offers no way; nothing that is documented does.
 */
export function limitBacklog(server: Server, most: number): boolean {
  return (server as unknown as Bare)._handle?.listen?.(most) === 0;
}

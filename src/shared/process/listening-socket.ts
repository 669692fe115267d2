// The listening socket as a descriptor: read by the process that binds it, and listened on by the processes that inherit it. This is the
// one place that uses Node without its documentation. Seen on Node 20.20, 22.23, 24.21 and 26.10.
import { type Server, Socket } from 'node:net';

/** Connections that the kernel queues while no process accepts: enough to replace a worker under load. */
export const backlog = 4096;

// Internal names of Node's net.js, unchanged since 0.6. @types/node does not have them.
type Bare = {
  readonly _handle: { readonly fd?: number; listen?(backlog: number): number } | null;
  readonly _listen2?: (address: null, port: null, type: null, backlog: number, fd: number) => void;
};

/**
 * The descriptor of a listening server, which continues to own it. Node has no documented way to get it. Throws if this Node has no
 * such field, and then nothing starts.
 */
export function descriptorOf(server: Server): number {
  const fd = (server as unknown as Bare)._handle?.fd ?? -1;
  if (fd < 0) throw new Error(`Node ${process.version} does not tell a server's descriptor`);
  return fd;
}

/**
 * Makes a server accept on an inherited listening descriptor, without asking the cluster's primary. Emits `listening` or
 * `error`. Throws if Node offers no way.
 *
 * For TCP there is a documented way, a socket around the descriptor. For a unix socket there is none: Node looks only at the socket's
 * descriptor and asks the primary, as it does with `listen({ fd })`, even if that is `exclusive` (Node 20.20: ENOTSOCK, 22.23 and
 * 24.21: EINVAL). The primary could hand out its own descriptor, but would close it with its last worker, and no process could
 * listen again. So this uses Node's internals.
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
 * Changes how many connections the kernel queues for a listening server to `max` + 1, by listen(2) on a socket that already listens
 * (Linux). Node has no documented way. False: this Node has none at all.
 */
export function limitBacklog(server: Server, max: number): boolean {
  return (server as unknown as Bare)._handle?.listen?.(max) === 0;
}

// The listening socket as a descriptor: read by the process that binds it, and listened on by the processes that inherit it. This is the
// one place that uses Node without its documentation. Seen on Node 20.20, 22.23, 24.21 and 26.10.
import { readdirSync, readlinkSync } from 'node:fs';
import { type Server, Socket } from 'node:net';
import { inodesOfListener, inodesOfUnixSocket } from './socket-tables.ts';

const ownDescriptors = '/proc/self/fd';

/** Connections that the kernel queues while no process accepts: enough to replace a worker under load. */
export const backlog = 4096;

// Node's own way from a bound address to a listening socket (net.js, unchanged since 0.6). @types/node does not have it.
type Bare = {
  readonly _listen2?: (address: null, port: null, type: null, backlog: number, fd: number) => void;
};

/**
 * The descriptor of a listening server of this process, which continues to own it: the one that refers to the socket which the kernel
 * lists at the server's address (proc(5)). Node has no documented way. Throws if it is not found.
 */
export function descriptorOf(server: Server): number {
  const links = new Set(inodesAt(server.address()).map((inode) => `socket:[${inode}]`));
  for (const fd of readdirSync(ownDescriptors)) {
    if (links.has(targetOf(fd))) return Number(fd);
  }
  throw new Error('the kernel does not list the listening socket');
}

function inodesAt(address: ReturnType<Server['address']>): readonly string[] {
  if (address === null) return [];
  return typeof address === 'string' ? inodesOfUnixSocket(address) : inodesOfListener(address);
}

/** The target of a descriptor. Empty if it is closed by now, like the descriptor of the list itself. */
function targetOf(fd: string): string {
  try {
    return readlinkSync(`${ownDescriptors}/${fd}`);
  } catch {
    return '';
  }
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
  if (!listenAt(server, backlog, fd)) {
    throw new Error(`Node ${process.version} does not let a worker listen on a unix socket`);
  }
}

/**
 * Changes how many connections the kernel queues for a listening server to `max` + 1, by listen(2) on a socket that already listens
 * (Linux). Node has no documented way. Emits `listening`. False: this Node has no way at all.
 * @param max at least 1: Node takes 0 for its default
 */
export function limitBacklog(server: Server, max: number): boolean {
  return listenAt(server, max, -1);
}

/** @param fd what to listen on if the server does not listen yet */
function listenAt(server: Server, max: number, fd: number): boolean {
  const bare = server as unknown as Bare;
  bare._listen2?.(null, null, null, max, fd);
  return bare._listen2 !== undefined;
}

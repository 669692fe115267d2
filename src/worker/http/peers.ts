// How many bytes the peers of sockets have acknowledged, and how long they may acknowledge nothing. The count comes from /proc/net/tcp, with one
// read for all sockets. A third of a send buffer of megabytes drains before a socket can be written to again. So what the kernel takes shows the
// progress of a slow reader every minute or more, and what the peer acknowledges shows it at once. Node has no cheaper way to ask the kernel.
import { fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { StallLimits } from './limits.ts';
import { descriptorOf, sourceOf, takenBytes, waitingBytes } from './node-internals.ts';

/** How much a peer has acknowledged. */
export type Acknowledged = {
  /** Bytes since an arbitrary start: only differences count. */
  readonly bytes: number;
  /** False: acknowledgements are not visible, and `bytes` is what the kernel has taken. */
  readonly isExact: boolean;
};

/** The progress of one socket's peer. */
export interface Peer {
  /** Bytes in this process that the kernel has not taken. */
  readonly waitingBytes: number;
  /** Never rejects. */
  acknowledged(): Promise<Acknowledged>;
  /** How long the peer may acknowledge nothing, in ms. @param isExact whether acknowledgements are visible */
  maxStillMs(isExact: boolean): number;
}

/** The peers of one worker's sockets. */
export class Peers {
  readonly #limits: StallLimits;
  readonly #queues: SendQueues;

  constructor(limits: StallLimits, queues = new SendQueues()) {
    this.#limits = limits;
    this.#queues = queues;
  }

  /** The peer of an open socket. */
  of(socket: Socket): Peer {
    const limits = this.#limits;
    const queues = this.#queues;
    const inode = inodeOf(socket);
    return {
      get waitingBytes() {
        return waitingBytes(socket);
      },
      acknowledged: async () => {
        // Read first: what the kernel takes meanwhile is in its queue, and is no progress.
        const taken = takenBytes(socket);
        const queued = inode === null ? null : await queues.unacknowledged(inode);
        return { bytes: taken - (queued ?? 0), isExact: queued !== null };
      },
      maxStillMs: (isExact) => {
        if (isOnThisHost(socket)) return limits.sameHostStallMs;
        return isExact ? limits.stallMs : limits.unseenStallMs;
      },
    };
  }
}

function inodeOf(socket: Socket): number | null {
  const descriptor = descriptorOf(socket);
  if (descriptor === null) return null;
  try {
    return fstatSync(descriptor).ino;
  } catch {
    return null;
  }
}

/** Whether the peer is on this host. Its acknowledgements then come in steps of up to 64 KiB, as over a unix socket. */
function isOnThisHost(socket: Socket): boolean {
  const { remoteAddress, localAddress } = sourceOf(socket);
  if (remoteAddress === undefined || remoteAddress === localAddress) return true;
  return /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}

/** Both families: the second has IPv4 connections to an IPv6 socket. The files show this process's network namespace. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** About 27,000 connections. The rest of a table is not read. */
const maxTableBytes = 4 * 1024 ** 2;
const chunkBytes = 64 * 1024;
/** Sockets that are asked for within this time share one read. */
const gatherMs = 50;

/** Reads the send queues of sockets, in bytes, by inode. Sockets that are not found are missing. */
export type ReadSendQueues = (inodes: ReadonlySet<number>) => Promise<ReadonlyMap<number, number>>;

/** The send queues of one worker's sockets. */
export class SendQueues {
  readonly #read: ReadSendQueues;
  #asked = new Map<number, ((bytes: number | null) => void)[]>();
  #isBusy = false;

  constructor(read: ReadSendQueues = readSendQueues) {
    this.#read = read;
  }

  /**
   * Resolves with the number of bytes that a socket's peer has not acknowledged; null: not known, because the socket is not a TCP socket
   * of this network namespace, or there is no /proc. Never rejects.
   */
  unacknowledged(inode: number): Promise<number | null> {
    return new Promise((resolve) => {
      const others = this.#asked.get(inode);
      if (others === undefined) this.#asked.set(inode, [resolve]);
      else others.push(resolve);
      if (this.#isBusy) return;
      this.#isBusy = true;
      setTimeout(() => void this.#answer(), gatherMs);
    });
  }

  async #answer(): Promise<void> {
    const asked = this.#asked;
    this.#asked = new Map();
    const found = await this.#read(new Set(asked.keys())).catch(() => null);
    for (const [inode, resolvers] of asked) {
      for (const resolve of resolvers) resolve(found?.get(inode) ?? null);
    }
    this.#isBusy = this.#asked.size > 0;
    if (this.#isBusy) setTimeout(() => void this.#answer(), gatherMs);
  }
}

/** Reads the kernel's tables up to the last of the sockets. Rejects if there are no tables. */
export async function readSendQueues(
  inodes: ReadonlySet<number>,
): Promise<ReadonlyMap<number, number>> {
  const found = new Map<number, number>();
  for (const table of tables) {
    if (found.size < inodes.size) await readTable(table, inodes, found);
  }
  return found;
}

async function readTable(
  path: string,
  inodes: ReadonlySet<number>,
  found: Map<number, number>,
): Promise<void> {
  const file = await open(path, 'r');
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let rest = '';
    for (let total = 0; total < maxTableBytes && found.size < inodes.size; ) {
      const { bytesRead } = await file.read(chunk, 0, chunkBytes, null);
      if (bytesRead === 0) return;
      total += bytesRead;
      rest = parseLines(rest + chunk.toString('latin1', 0, bytesRead), inodes, found);
    }
  } finally {
    await file.close();
  }
}

/**
 * Parses the complete lines of a table, and returns the text behind the last one. Skips lines of another form
 * (https://www.kernel.org/doc/html/latest/networking/proc_net_tcp.html).
 */
export function parseLines(
  text: string,
  inodes: ReadonlySet<number>,
  found: Map<number, number>,
): string {
  let from = 0;
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
    const [, , , , queues = '', , , , , inode = ''] = text.slice(from, end).trim().split(/\s+/, 10);
    from = end + 1;
    const wanted = Number(inode);
    if (!inodes.has(wanted)) continue;
    const bytes = Number.parseInt(queues, 16);
    if (/^[0-9A-F]{8}:/.test(queues)) found.set(wanted, bytes);
  }
  return text.slice(from).slice(-chunkBytes);
}

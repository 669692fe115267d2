// What the peers of sockets have acknowledged, and how long they may acknowledge nothing.
import { fstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { StallLimits } from './limits.ts';
import { descriptorOf, sourceOf, takenBytes, waitingBytes } from './node-internals.ts';

/** What a peer has taken of what was sent. */
export type Acknowledged = {
  /** Bytes, from any number on; only differences count. */
  readonly bytes: number;
  /** False: they are those that the kernel has taken, for nothing else can be known. */
  readonly isExact: boolean;
};

/** One socket's peer, as far as its progress goes. */
export interface Peer {
  /** Bytes that wait in this process to be taken by the kernel. */
  readonly waitingBytes: number;
  /** Never rejects. */
  acknowledged(): Promise<Acknowledged>;
  /** For how long it may acknowledge nothing, in ms. @param isExact whether acknowledgements can be seen */
  mostStillMs(isExact: boolean): number;
}

/** The peers of one worker's sockets. */
export class Peers {
  readonly #limits: StallLimits;
  readonly #queues: SendQueues;

  constructor(limits: StallLimits, queues = new SendQueues()) {
    this.#limits = limits;
    this.#queues = queues;
  }

  /** The peer of a socket that is open. */
  of(socket: Socket): Peer {
    const limits = this.#limits;
    const queues = this.#queues;
    const inode = inodeOf(socket);
    return {
      get waitingBytes() {
        return waitingBytes(socket);
      },
      acknowledged: async () => {
        // First: what the kernel takes meanwhile is in its queue, and no progress.
        const taken = takenBytes(socket);
        const queued = inode === null ? null : await queues.unacknowledged(inode);
        return { bytes: taken - (queued ?? 0), isExact: queued !== null };
      },
      mostStillMs: (isExact) => {
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

/** Whether the peer is on this host: its acknowledgements come in steps of up to 64 KiB then, as those over a unix socket do. */
function isOnThisHost(socket: Socket): boolean {
  const { remoteAddress, localAddress } = sourceOf(socket);
  if (remoteAddress === undefined || remoteAddress === localAddress) return true;
  return /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}

/** Both families: a connection of IPv4 to a socket of IPv6 is in the second. The files show this process's network namespace. */
const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
/** About 27,000 connections. What stands behind is not looked for. */
const maxTableBytes = 4 * 1024 ** 2;
const chunkBytes = 64 * 1024;
/** Questions within this time share one read. */
const gatherMs = 50;

/** Reads the send queues of sockets, in bytes, by their inodes. A socket that is not found is missing. */
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
   * Resolves with the bytes that a socket's peer has not acknowledged; null: it cannot be told, for it is no TCP socket of this
   * network namespace, or there is no /proc. Never rejects.
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

/** Reads the kernel's tables up to the last socket that is asked for. Rejects where there are none. */
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
 * Takes the whole lines of a table apart, and returns what stands behind the last of them. Lines that are none are left out
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

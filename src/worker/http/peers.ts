// How many bytes the peers of sockets have acknowledged, and how long they may acknowledge nothing. The count comes from /proc/net/tcp, with one
// read for all sockets. A third of a send buffer of megabytes drains before a socket can be written to again. So what the kernel takes shows the
// progress of a slow reader every minute or more, and what the peer acknowledges shows it at once. Node has no cheaper way to ask the kernel.
import type { Socket } from 'node:net';
import {
  nameInTables,
  type ReadSendQueues,
  readSendQueues,
} from '../../shared/process/tcp-table.ts';
import type { StallLimits } from './limits.ts';

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
    const name = nameInTables(socket);
    return {
      get waitingBytes() {
        return socket.writableLength;
      },
      acknowledged: async () => {
        // Read first: what the kernel takes meanwhile is in its queue, and is no progress.
        const taken = takenBytes(socket);
        const queued = name === null ? null : await queues.unacknowledged(name);
        return { bytes: taken - (queued ?? 0), isExact: queued !== null };
      },
      maxStillMs: (isExact) => {
        if (isOnThisHost(socket)) return limits.sameHostStallMs;
        return isExact ? limits.stallMs : limits.unseenStallMs;
      },
    };
  }
}

/** Bytes that the kernel has taken. A write counts when the kernel has taken all of it. */
export function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}

/** Whether the peer is on this host. Its acknowledgements then come in steps of up to 64 KiB, as over a unix socket. */
function isOnThisHost({ remoteAddress, localAddress }: Socket): boolean {
  if (remoteAddress === undefined || remoteAddress === localAddress) return true;
  return /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}

/** Sockets that are asked for within this time share one read. */
const gatherMs = 50;

/** The send queues of one worker's sockets. */
export class SendQueues {
  readonly #read: ReadSendQueues;
  #asked = new Map<string, ((bytes: number | null) => void)[]>();
  #isBusy = false;

  constructor(read: ReadSendQueues = readSendQueues) {
    this.#read = read;
  }

  /**
   * Resolves with the number of bytes that the peer of a connection has not acknowledged; null: not known, because it is no TCP connection
   * of this network namespace, or there is no /proc. Never rejects.
   * @param name its name in the kernel's tables
   */
  unacknowledged(name: string): Promise<number | null> {
    return new Promise((resolve) => {
      const others = this.#asked.get(name);
      if (others === undefined) this.#asked.set(name, [resolve]);
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
    for (const [name, resolvers] of asked) {
      for (const resolve of resolvers) resolve(found?.get(name) ?? null);
    }
    this.#isBusy = this.#asked.size > 0;
    if (this.#isBusy) setTimeout(() => void this.#answer(), gatherMs);
  }
}

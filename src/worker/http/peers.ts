// What the peers of sockets have acknowledged, and how long they may acknowledge nothing.
import { fstatSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { StallLimits } from './client-timeouts.ts';
import { descriptorOf, sourceOf, takenBytes, waitingBytes } from './node-internals.ts';
import { SendQueues } from './send-queues.ts';

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

// Clients that do not keep up with their replies. A reply whose reader takes nothing for too long is reset. While requests wait for a
// session, slow readers may keep only some of the pool's sessions.
import { performance } from 'node:perf_hooks';
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import { resetConnection } from './failure-reply.ts';
import type { Acknowledged, Peer, Peers } from './peers.ts';
import type { OutgoingReply } from './reply.ts';

/** Below this pace a reader is slow: 64 KiB a second, over the window. */
const slowBytesPerSecond = 64 * 1024;
const windowMs = 2_000;
/** A window needs more samples than this. If this process was stopped, it wrote nothing, and the reader is not to blame. */
const minSamples = 4;
/** A reader that waits again after a shorter pause counts as one that has waited all the time. */
const gapMs = 250;

type Sample = { readonly at: number; readonly bytes: number };

/** How fast one reader acknowledges, over the last two seconds. Times are in ms of any clock that does not jump. */
export class Pace {
  #samples: Sample[] = [];
  #isExact = true;
  /** When the reader had taken everything; null: bytes wait for it. */
  #pausedAt: number | null = null;

  /** Bytes wait for the reader from now on. */
  begins(now: number): void {
    if (this.#pausedAt !== null && now - this.#pausedAt > gapMs) this.#samples = [];
    this.#pausedAt = null;
  }

  /** The reader has taken everything. */
  pauses(now: number): void {
    this.#pausedAt = now;
  }

  /** Notes how much has been acknowledged so far. */
  note({ bytes, isExact }: Acknowledged, now: number): void {
    if (isExact !== this.#isExact) this.#samples = [];
    this.#isExact = isExact;
    // The oldest sample that is kept begins the window.
    while (this.#samples.length > 1 && now - (this.#samples[1] as Sample).at >= windowMs) {
      this.#samples.shift();
    }
    this.#samples.push({ at: now, bytes });
  }

  /** Bytes per second over the window; null: the samples do not fill it. */
  get bytesPerSecond(): number | null {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || this.#samples.length <= minSamples) {
      return null;
    }
    const tookMs = last.at - first.at;
    return tookMs < windowMs ? null : ((last.bytes - first.bytes) * 1000) / tookMs;
  }

  get isSlow(): boolean {
    const pace = this.bytesPerSecond;
    return pace !== null && pace < slowBytesPerSecond;
  }
}

const stallCheckMs = 5_000;

/**
 * Calls `onStall` when bytes wait for a peer and it has acknowledged none of them for as long as its limit allows. There is no other sign of a
 * dead peer, because a paused connection hides it. The owner must stop the watch.
 */
export class StallWatch {
  readonly #peer: Peer;
  readonly #onStall: () => void;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #waiting = 0;
  /** The acknowledgements at the last check without progress; null: there was progress since. */
  #acknowledged: Acknowledged | null = null;
  #stillSince = 0;
  #isStopped = false;

  /** @param now a clock that does not jump, in ms */
  constructor(peer: Peer, onStall: () => void, now = () => performance.now()) {
    this.#peer = peer;
    this.#onStall = onStall;
    this.#now = now;
  }

  start(): void {
    this.#progressed();
    this.#timer = setInterval(() => void this.check(), stallCheckMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** Checks once. If the kernel takes bytes, the peer has acknowledged some; only otherwise are acknowledgements read. */
  async check(): Promise<void> {
    if (this.#peer.waitingBytes === 0 || this.#peer.waitingBytes !== this.#waiting) {
      this.#progressed();
      return;
    }
    const acknowledged = await this.#peer.acknowledged();
    if (this.#isStopped) return;
    const before = this.#acknowledged;
    this.#acknowledged = acknowledged;
    // The first one has nothing to compare with: the time runs from the last progress.
    const isStill =
      before === null ||
      (before.isExact === acknowledged.isExact && before.bytes === acknowledged.bytes);
    if (!isStill) this.#stillSince = this.#now();
    if (this.#now() - this.#stillSince < this.#peer.maxStillMs(acknowledged.isExact)) return;
    this.stop();
    this.#onStall();
  }

  #progressed(): void {
    this.#waiting = this.#peer.waitingBytes;
    this.#acknowledged = null;
    this.#stillSince = this.#now();
  }
}

/** How often the paces of slow readers are sampled. */
const sampleMs = 400;

/** A reader whose reply keeps a session while bytes wait for the reader. */
export interface ReaderWithSession extends Indexed {
  readonly pace: Pace;
  /** How much the reader has acknowledged so far. Never rejects. */
  acknowledged(): Promise<Acknowledged>;
  /** Ends the reply and releases the session. */
  giveUp(): void;
}

/** The limits for the slow readers of one pool. */
export type SlowReadersSettings = {
  /** Whether requests wait for a session. */
  readonly othersWait: () => boolean;
  /** How many sessions slow readers may keep meanwhile. */
  readonly maxSessions: () => number;
  /** Called with the number of replies that were given up at once. */
  readonly onGivenUp: (count: number) => void;
};

/** The readers of one pool that bytes wait for. Their paces are sampled only while there are more of them than may be slow. */
export class SlowReaders {
  readonly #settings: SlowReadersSettings;
  readonly #now: () => number;
  readonly #readers = new IndexedSet<ReaderWithSession>();
  #timer: NodeJS.Timeout | null = null;
  #isSampling = false;

  /** @param now a clock that does not jump, in ms */
  constructor(settings: SlowReadersSettings, now = () => performance.now()) {
    this.#settings = settings;
    this.#now = now;
  }

  /** Bytes wait for the reader from now on. */
  add(reader: ReaderWithSession): void {
    reader.pace.begins(this.#now());
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => void this.sample(), sampleMs).unref();
  }

  /** The reader has taken everything, or its reply is over. */
  delete(reader: ReaderWithSession): void {
    if (this.#readers.delete(reader)) reader.pace.pauses(this.#now());
  }

  /** Samples the paces, and gives up the slowest readers if too many are slow. */
  async sample(): Promise<void> {
    if (this.#isSampling) return;
    if (this.#readers.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    if (this.#readers.size <= this.#settings.maxSessions()) return;
    this.#isSampling = true;
    const readers = [...this.#readers];
    const acknowledged = await Promise.all(readers.map((reader) => reader.acknowledged()));
    this.#isSampling = false;
    const now = this.#now();
    for (const [at, reader] of readers.entries()) {
      reader.pace.note(acknowledged[at] as Acknowledged, now);
    }
    this.#giveUpSlowest();
  }

  #giveUpSlowest(): void {
    if (!this.#settings.othersWait()) return;
    // Readers that have taken everything meanwhile are no longer in the set.
    const slow = [...this.#readers].filter(({ pace }) => pace.isSlow);
    const tooMany = slow.length - Math.max(0, this.#settings.maxSessions());
    if (tooMany <= 0) return;
    slow.sort((one, other) => paceOf(one) - paceOf(other));
    for (const reader of slow.slice(0, tooMany)) reader.giveUp();
    this.#settings.onGivenUp(tooMany);
  }
}

function paceOf({ pace }: ReaderWithSession): number {
  return pace.bytesPerSecond ?? Number.POSITIVE_INFINITY;
}

/** The sender of a reply. */
export interface ReaderEvents {
  /** The reader has taken what was written: more may come. */
  readerFlows(): void;
  /** The reader takes nothing any more. */
  readerStalled(): void;
}

/** The reader of one reply. The owner must stop it when the connection is closed. */
export class SlowReader implements ReaderWithSession {
  index = -1;
  readonly pace = new Pace();
  /** Whether bytes wait for the reader. */
  isWaiting = false;
  readonly #reply: OutgoingReply;
  readonly #events: ReaderEvents;
  readonly #others: SlowReaders | null;
  readonly #peers: Peers;
  /** Null: the reader has kept up so far. */
  #peer: Peer | null = null;
  #watch: StallWatch | null = null;

  /** @param others the readers that keep sessions of the same pool; null: the session of this reply is reserved anyway */
  constructor(
    reply: OutgoingReply,
    events: ReaderEvents,
    others: SlowReaders | null,
    peers: Peers,
  ) {
    this.#reply = reply;
    this.#events = events;
    this.#others = others;
    this.#peers = peers;
  }

  async acknowledged(): Promise<Acknowledged> {
    return (await this.#peer?.acknowledged()) ?? { bytes: 0, isExact: false };
  }

  giveUp(): void {
    this.stop();
    this.#events.readerStalled();
  }

  /** More was written than the reader takes for now. */
  wait(): void {
    this.isWaiting = true;
    const { socket } = this.#reply;
    if (socket !== null) this.#peer ??= this.#peers.of(socket);
    this.#others?.add(this);
    this.#startWatch(() => this.#events.readerStalled());
    this.#reply.onceDrained(() => {
      this.stop();
      this.#events.readerFlows();
    });
  }

  /** No more is written here. What still waits is watched: by the server, once the reply is written in full. */
  finish(): void {
    this.stop();
    if (this.#reply.writableEnded || this.#reply.writableLength === 0) return;
    this.#startWatch(() => resetConnection(this.#reply.socket));
  }

  /** Stops watching. */
  stop(): void {
    this.isWaiting = false;
    this.#others?.delete(this);
    this.#watch?.stop();
    this.#watch = null;
  }

  /** If the reply goes to another worker, only that worker knows the client, and watches it. */
  #startWatch(onStall: () => void): void {
    const { socket, isForwarded } = this.#reply;
    if (socket === null || isForwarded) return;
    this.#peer ??= this.#peers.of(socket);
    this.#watch = new StallWatch(this.#peer, onStall);
    this.#watch.start();
  }
}

// How fast a reader acknowledges what it is sent, over the last two seconds.
// Pure but for its memory. Time comes from outside, in ms of any clock that does not jump.

import { performance } from 'node:perf_hooks';
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';
import type { Acknowledged, Peer, Peers } from './peers.ts';
import { type OutgoingReply, resetConnection } from './reply.ts';

/** A slower reader is slow (64 KiB a second, over so long). */
const slowBytesPerSecond = 64 * 1024;
const windowMs = 2_000;
/** Looks that a window must have: if this process stood still, it did not write, and the reader is not to blame. */
const leastLooks = 4;
/** A reader that waits again after so short a time has been waited for all the time, as far as its pace goes. */
const gapMs = 250;

type Look = { readonly at: number; readonly bytes: number };

/** The pace of one reader. */
export class Pace {
  #looks: Look[] = [];
  #isExact = true;
  /** When the reader had taken all; null: it is waited for. */
  #pausedAt: number | null = null;

  /** The reader is waited for from now on. */
  begins(now: number): void {
    if (this.#pausedAt !== null && now - this.#pausedAt > gapMs) this.#looks = [];
    this.#pausedAt = null;
  }

  /** The reader has taken all. */
  pauses(now: number): void {
    this.#pausedAt = now;
  }

  /** Notes what has been acknowledged so far. */
  note({ bytes, isExact }: Acknowledged, now: number): void {
    if (isExact !== this.#isExact) this.#looks = [];
    this.#isExact = isExact;
    // The oldest that is kept begins the window.
    while (this.#looks.length > 1 && now - (this.#looks[1] as Look).at >= windowMs) {
      this.#looks.shift();
    }
    this.#looks.push({ at: now, bytes });
  }

  /** Bytes a second over the window; null: it has not been looked at for as long, or not often enough. */
  get bytesPerSecond(): number | null {
    const [first] = this.#looks;
    const last = this.#looks.at(-1);
    if (first === undefined || last === undefined || this.#looks.length <= leastLooks) return null;
    const tookMs = last.at - first.at;
    return tookMs < windowMs ? null : ((last.bytes - first.bytes) * 1000) / tookMs;
  }

  get isSlow(): boolean {
    const pace = this.bytesPerSecond;
    return pace !== null && pace < slowBytesPerSecond;
  }
}

const checkMs = 5_000;

/** Calls `onStall` when a peer for which bytes wait has acknowledged none of them for as long as it may. Its owner must stop it. */
export class StallWatch {
  readonly #peer: Peer;
  readonly #onStall: () => void;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #waiting = 0;
  /** At the last look at what nothing was taken of; null: something has been taken since. */
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
    this.#timer = setInterval(() => void this.check(), checkMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** Looks once. What the kernel takes is room that an acknowledgement has made: only if it takes nothing is it asked for more. */
  async check(): Promise<void> {
    if (this.#peer.waitingBytes === 0 || this.#peer.waitingBytes !== this.#waiting) {
      this.#progressed();
      return;
    }
    const seen = await this.#peer.acknowledged();
    if (this.#isStopped) return;
    const before = this.#acknowledged;
    this.#acknowledged = seen;
    // Without one to compare it with, it tells nothing: the time runs from when something was taken.
    const isStill =
      before === null || (before.isExact === seen.isExact && before.bytes === seen.bytes);
    if (!isStill) this.#stillSince = this.#now();
    if (this.#now() - this.#stillSince < this.#peer.mostStillMs(seen.isExact)) return;
    this.stop();
    this.#onStall();
  }

  #progressed(): void {
    this.#waiting = this.#peer.waitingBytes;
    this.#acknowledged = null;
    this.#stillSince = this.#now();
  }
}

/** How often the readers' paces are taken. */
const lookMs = 400;

/** A reader that has not taken what was written to it, and whose reply holds a session meanwhile. */
export interface HoldingReader extends Indexed {
  readonly pace: Pace;
  /** What it has acknowledged so far. Never rejects. */
  acknowledged(): Promise<Acknowledged>;
  /** Ends the reply and gives the session back. */
  giveUp(): void;
}

/** What a share is made of. */
export type StalledReadersSettings = {
  /** Whether requests wait for a session. */
  readonly othersWait: () => boolean;
  /** How many sessions slow readers may hold meanwhile. */
  readonly mostHeld: () => number;
  /** Told how many were given up at one look. */
  readonly onGivenUp: (count: number) => void;
};

/** The readers of one worker that are waited for. It looks at them only while there are more than may be slow. */
export class StalledReaders {
  readonly #settings: StalledReadersSettings;
  readonly #now: () => number;
  readonly #readers = new IndexedSet<HoldingReader>();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;

  /** @param now a clock that does not jump, in ms */
  constructor(settings: StalledReadersSettings, now = () => performance.now()) {
    this.#settings = settings;
    this.#now = now;
  }

  /** From here on the reader is waited for. */
  add(reader: HoldingReader): void {
    reader.pace.begins(this.#now());
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => void this.look(), lookMs).unref();
  }

  /** It has taken all, or its reply is over. */
  delete(reader: HoldingReader): void {
    if (this.#readers.delete(reader)) reader.pace.pauses(this.#now());
  }

  /** Takes the paces, and gives up the slowest where too many are slow. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    if (this.#readers.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    if (this.#readers.size <= this.#settings.mostHeld()) return;
    this.#isLooking = true;
    const readers = [...this.#readers];
    const acknowledged = await Promise.all(readers.map((reader) => reader.acknowledged()));
    this.#isLooking = false;
    const now = this.#now();
    for (const [at, reader] of readers.entries()) {
      reader.pace.note(acknowledged[at] as Acknowledged, now);
    }
    this.#giveUpSlowest();
  }

  #giveUpSlowest(): void {
    if (!this.#settings.othersWait()) return;
    // Those that have taken all meanwhile are waited for no more.
    const slow = [...this.#readers].filter(({ pace }) => pace.isSlow);
    const beyond = slow.length - Math.max(0, this.#settings.mostHeld());
    if (beyond <= 0) return;
    slow.sort((one, other) => paceOf(one) - paceOf(other));
    for (const reader of slow.slice(0, beyond)) reader.giveUp();
    this.#settings.onGivenUp(beyond);
  }
}

function paceOf({ pace }: HoldingReader): number {
  return pace.bytesPerSecond ?? Number.POSITIVE_INFINITY;
}

/** Who sends the reply. */
export interface ReaderEvents {
  /** The reader has taken what was written: more may come. */
  readerFlows(): void;
  /** The reader takes nothing any more. */
  readerStalled(): void;
}

/** Watches the reader of one reply. Its owner must stop it when the connection is closed. */
export class SlowReader implements HoldingReader {
  index = -1;
  readonly pace = new Pace();
  isWaiting = false;
  readonly #response: OutgoingReply;
  readonly #peers: Peers;
  /** Null: it has kept up so far. */
  #peer: Peer | null = null;
  readonly #events: ReaderEvents;
  readonly #others: StalledReaders | null;
  #watch: StallWatch | null = null;

  /** @param others all readers of the worker that hold a session while they are waited for; null: this one's session is held in any case */
  constructor(
    response: OutgoingReply,
    events: ReaderEvents,
    others: StalledReaders | null,
    peers: Peers,
  ) {
    this.#response = response;
    this.#peers = peers;
    this.#events = events;
    this.#others = others;
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
    const { socket } = this.#response;
    if (socket !== null) this.#peer ??= this.#peers.of(socket);
    this.#others?.add(this);
    this.#startWatch(() => this.#events.readerStalled());
    this.#response.once('drain', () => {
      this.stop();
      this.#events.readerFlows();
    });
  }

  /** The last byte was written; what the reader has not taken yet ends with the connection, or stalls. */
  finish(): void {
    this.stop();
    if (this.#response.writableLength === 0) return;
    this.#startWatch(() => resetConnection(this.#response.socket));
  }

  /** Stops watching. */
  stop(): void {
    this.isWaiting = false;
    this.#others?.delete(this);
    this.#watch?.stop();
    this.#watch = null;
  }

  /** If the reply goes to another worker, only that worker knows its client, and watches it itself. */
  #startWatch(onStall: () => void): void {
    const { socket, isForwarded } = this.#response;
    if (socket === null || isForwarded) return;
    this.#peer ??= this.#peers.of(socket);
    this.#watch = new StallWatch(this.#peer, onStall);
    this.#watch.start();
  }
}

// A reader that does not keep up with its reply: when it goes on, and when it has stalled.
// Must not know what is sent to it.
import type { OutgoingReply } from './outgoing-reply.ts';
import { Pace } from './pace.ts';
import type { Acknowledged, Peer, Peers } from './peers.ts';
import { resetConnection } from './reset.ts';
import { StallWatch } from './stall-watch.ts';
import type { HoldingReader, StalledReaders } from './stalled-readers.ts';

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

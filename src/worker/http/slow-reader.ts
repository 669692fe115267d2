// A reader that does not keep up with its reply: when it goes on, and when it has stalled.
// Must not know what is sent to it.
import type { ServerResponse } from 'node:http';
import { resetConnection } from './reset.ts';
import { StallWatch } from './stall-watch.ts';

/** Who sends the reply. */
export interface ReaderOwner {
  /** The reader has taken what was written: more may come. */
  readerFlows(): void;
  /** The reader takes nothing any more. */
  readerStalled(): void;
}

/** Watches the reader of one reply. Its owner must stop it when the connection is closed. */
export class SlowReader {
  isWaiting = false;
  readonly #response: ServerResponse;
  readonly #owner: ReaderOwner;
  #watch: StallWatch | null = null;

  constructor(response: ServerResponse, owner: ReaderOwner) {
    this.#response = response;
    this.#owner = owner;
  }

  /** More was written than the reader takes for now. */
  wait(): void {
    this.isWaiting = true;
    this.#startWatch(() => this.#owner.readerStalled());
    this.#response.once('drain', () => {
      this.stop();
      this.#owner.readerFlows();
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
    this.#watch?.stop();
    this.#watch = null;
  }

  #startWatch(onStall: () => void): void {
    const { socket } = this.#response;
    if (socket === null) return;
    this.#watch = new StallWatch(socket, onStall);
    this.#watch.start();
  }
}

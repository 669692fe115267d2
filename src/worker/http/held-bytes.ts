// How much memory all requests that have not been read to their end may hold together.
// Must not know what the bytes are, nor how a client is told.
import { type Indexed, IndexedSet } from '../indexed-set.ts';

/** Whose bytes are counted. */
export interface Holder extends Indexed {
  /** Written by HeldBytes alone. */
  heldBytes: number;
  /** There is no room for it: it must hold nothing when this returns. */
  giveUp(): void;
}

/** What is left over after some had to go: else the next byte would have to find the next one. */
const roomAfterwards = 3 / 4;

/** The bytes of one worker's clients. */
export class HeldBytes {
  readonly #holders = new IndexedSet<Holder>();
  readonly #limit: number;
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  /** A holder holds so much from now on. Beyond the limit those with the average and more go, the oldest first. */
  note(holder: Holder, bytes: number): void {
    this.#total += bytes - holder.heldBytes;
    holder.heldBytes = bytes;
    if (bytes === 0) this.#holders.delete(holder);
    else if (!this.#holders.has(holder)) this.#holders.add(holder);
    if (this.#total > this.#limit) this.#makeRoom();
  }

  #makeRoom(): void {
    const average = this.#total / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#total <= this.#limit * roomAfterwards) return;
      if (holder.heldBytes >= average) holder.giveUp();
    }
  }
}

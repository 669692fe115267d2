// The memory that all connections of a worker use for input that is not handled yet, and its limit.
import { type Indexed, IndexedSet } from '../../shared/indexed-set.ts';

/** A connection with input in memory. */
export interface InputHolder extends Indexed {
  /** Only BufferedInput writes it. */
  bufferedBytes: number;
  /** Must release all of its input before this returns. */
  giveUp(): void;
}

/** How much of the limit remains in use after connections had to give up, so that not every further byte ends another one. */
const fillAfterwards = 3 / 4;

/** Counts and limits the input that all connections of a worker keep in memory. */
export class BufferedInput {
  readonly #holders = new IndexedSet<InputHolder>();
  readonly #limit: number;
  #total = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get total(): number {
    return this.#total;
  }

  /** Notes how much a connection keeps. Beyond the limit, connections that keep the average or more give up, the oldest first. */
  note(holder: InputHolder, bytes: number): void {
    this.#total += bytes - holder.bufferedBytes;
    holder.bufferedBytes = bytes;
    if (bytes === 0) this.#holders.delete(holder);
    else if (!this.#holders.has(holder)) this.#holders.add(holder);
    if (this.#total > this.#limit) this.#makeRoom();
  }

  #makeRoom(): void {
    const average = this.#total / this.#holders.size;
    for (const holder of this.#holders) {
      if (this.#total <= this.#limit * fillAfterwards) return;
      if (holder.bufferedBytes >= average) holder.giveUp();
    }
  }
}

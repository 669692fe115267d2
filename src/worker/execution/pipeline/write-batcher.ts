// When what has been added is written: at the end of a turn of the event loop, later while more keeps coming.
// Must not know what is added, nor where it is written.
import { performance } from 'node:perf_hooks';

/**
 * So many turns at most are waited for company, and so long. A write and the read of its answer cost most of a small
 * statement, whatever their size: with 48 clients that connect for each request, of whom libuv takes one a turn, 4
 * turns instead of none took 147 -> 105 µs of CPU a point query, 64 instead of 4 then 105 -> 89 (and 34 -> 28 µs of
 * the database's).
 */
export const mostTurns = 64;
export const mostMs = 2;

/** What is batched, and the clock (ms) by which it is. */
export type Batch = {
  /** How much would be written now. */
  readonly size: () => number;
  /** Whether no more goes into what would be written now. */
  readonly isFull: () => boolean;
  readonly write: () => void;
  readonly now?: () => number;
};

const clock = (): number => performance.now();

/** Decides when to write. */
export class WriteBatcher {
  readonly #batch: Batch;
  readonly #now: () => number;
  #isDue = false;
  #turns = 0;
  #seen = 0;
  #since = 0;
  #lastSize = 0;

  constructor(batch: Batch) {
    this.#batch = batch;
    this.#now = batch.now ?? clock;
  }

  /** To be called when something has been added. */
  begin(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#turns = 0;
    this.#seen = 0;
    this.#since = this.#now();
    setImmediate(this.#turn);
  }

  /** One client alone never waits: it is company only when there was some the last time. */
  readonly #turn = (): void => {
    const size = this.#batch.size();
    if (this.#lastSize > 1 && size > this.#seen && this.#mayWait()) {
      this.#seen = size;
      this.#turns += 1;
      setImmediate(this.#turn);
      return;
    }
    this.#lastSize = size;
    this.#isDue = false;
    this.#batch.write();
  };

  #mayWait(): boolean {
    if (this.#turns >= mostTurns || this.#batch.isFull()) return false;
    return this.#now() - this.#since < mostMs;
  }
}

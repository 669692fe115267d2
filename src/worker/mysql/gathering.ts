// When what has been added is written: at the end of a turn of the event loop, later while more keeps coming.
// Must not know what is added, nor where it is written.
import { performance } from 'node:perf_hooks';

/**
 * So many turns at most are waited for company, and so long. A write and the read of its answer cost most of a small
 * statement, whatever their size: with 48 clients that connect for each request, of whom libuv takes one a turn, it
 * took 147 -> 105 µs of CPU a point query here at 4 turns and 89 at 64, and 41 -> 34 -> 28 µs of the database's.
 */
const mostTurns = 64;
const mostMs = 2;

/** Decides when to write. */
export class Gathering {
  readonly #size: () => number;
  readonly #write: () => void;
  #isDue = false;
  #turns = 0;
  #seen = 0;
  #since = 0;
  #lastSize = 0;

  /**
   * @param size how much would be written now
   * @param write writes it
   */
  constructor(size: () => number, write: () => void) {
    this.#size = size;
    this.#write = write;
  }

  /** To be called when something has been added. */
  begin(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#turns = 0;
    this.#seen = 0;
    this.#since = performance.now();
    setImmediate(this.#turn);
  }

  /** One client alone never waits: it is company only when there was some the last time. */
  readonly #turn = (): void => {
    const size = this.#size();
    if (this.#lastSize > 1 && size > this.#seen && this.#mayWait()) {
      this.#seen = size;
      this.#turns += 1;
      setImmediate(this.#turn);
      return;
    }
    this.#lastSize = size;
    this.#isDue = false;
    this.#write();
  };

  #mayWait(): boolean {
    return this.#turns < mostTurns && performance.now() - this.#since < mostMs;
  }
}

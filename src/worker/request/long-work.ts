// Runs the long work of a worker's requests in pieces, one request after the other, and gives the event loop time in between.
import { performance } from 'node:perf_hooks';
import type { Pieces } from '../../shared/pieces.ts';

/** How long one request's work may hold the event loop; its pieces are shorter. */
const turnMs = 8;

/** The clock, and how the event loop runs other work first. */
export type Turns = {
  readonly now: () => number;
  /** Calls back once all other work that is due has run. */
  readonly afterOthers: (callback: () => void) => void;
};

const turnsOfEventLoop: Turns = {
  now: () => performance.now(),
  afterOthers: (callback) => void setImmediate(callback),
};

/** Does a piece, and returns whether it was the last. */
type Job = () => boolean;

/** One for each worker. */
export class LongWork {
  readonly #turns: Turns;
  /** The first has the next turn. */
  readonly #jobs: Job[] = [];
  readonly #maxBytes: number;
  #bytes = 0;
  #isDue = false;

  /** @param maxBytes how many bytes of requests may wait for their work, or be worked on */
  constructor(maxBytes: number, turns: Turns = turnsOfEventLoop) {
    this.#maxBytes = maxBytes;
    this.#turns = turns;
  }

  /** Whether a request of so many bytes may be worked on beside the others. */
  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= this.#maxBytes;
  }

  /**
   * Does all of the work for a request. Resolves with its result; rejects with what it throws. The first piece runs after other work that is
   * due.
   * @param bytes the length of the request
   */
  do<Result>(work: Pieces<Result>, bytes: number): Promise<Result> {
    this.#bytes += bytes;
    return this.#do(work).finally(() => {
      this.#bytes -= bytes;
    });
  }

  #do<Result>(work: Pieces<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(() => {
        try {
          const { done, value } = work.next();
          if (done === true) resolve(value);
          return done === true;
        } catch (cause) {
          reject(cause as Error);
          return true;
        }
      });
      this.#await();
    });
  }

  #await(): void {
    if (this.#isDue || this.#jobs.length === 0) return;
    this.#isDue = true;
    this.#turns.afterOthers(() => this.#takeTurn());
  }

  /** A job that is not done goes behind the others. */
  #takeTurn(): void {
    this.#isDue = false;
    const until = this.#turns.now() + turnMs;
    const job = this.#jobs.shift();
    let isOver = job === undefined;
    while (!isOver && job !== undefined && this.#turns.now() < until) isOver = job();
    if (!isOver && job !== undefined) this.#jobs.push(job);
    this.#await();
  }
}

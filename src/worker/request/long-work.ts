// The long work of a worker's requests: one piece after the other, in turns, with the event loop between them.
import { performance } from 'node:perf_hooks';
import type { Pieces } from '../../shared/pieces.ts';

/** All requests together have the processor for so long at a time; their pieces are shorter. */
const turnMs = 8;

/** The clock, and how others get their turn before ours. */
export type Turns = {
  readonly now: () => number;
  /** Calls back once all others have had theirs. */
  readonly afterOthers: (callback: () => void) => void;
};

const turnsOfEventLoop: Turns = {
  now: () => performance.now(),
  afterOthers: (callback) => void setImmediate(callback),
};

/** One of them: does a piece, and returns whether it was the last. */
type Job = () => boolean;

/** One for each worker. */
export class LongWork {
  readonly #turns: Turns;
  /** The first has the next turn. */
  readonly #jobs: Job[] = [];
  #isDue = false;

  constructor(turns: Turns = turnsOfEventLoop) {
    this.#turns = turns;
  }

  /** Does all of it, and resolves with what it comes to; rejects with what it throws. The first piece is done in a later turn. */
  do<Result>(work: Pieces<Result>): Promise<Result> {
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

  /** The job that had this turn goes behind the others. */
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

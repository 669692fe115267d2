// Work of which a bounded amount is done in each turn of the event loop.
// Must not know what is done.

/** Whoever has something to do. */
export interface TurnTaker {
  takeTurn(): void;
}

/** A refusal takes about a tenth of a millisecond. */
const mostPerTurn = 16;

/** First come, first served. */
export class Turns {
  #waiting: TurnTaker[] = [];
  #left = mostPerTurn;
  #isPlanned = false;

  /** Has it take its turn, once: now, or when there is one left. */
  await(taker: TurnTaker): void {
    this.#planNext();
    if (this.#left === 0) {
      this.#waiting.push(taker);
      return;
    }
    this.#left -= 1;
    taker.takeTurn();
  }

  #planNext(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      const now = this.#waiting.slice(0, mostPerTurn);
      this.#waiting = this.#waiting.slice(mostPerTurn);
      this.#left = mostPerTurn - now.length;
      if (now.length > 0) this.#planNext();
      for (const taker of now) taker.takeTurn();
    });
  }
}

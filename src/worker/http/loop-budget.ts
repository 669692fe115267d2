// A limit on how much of one kind of work is done in each turn of the event loop.

/** A rejection takes about a tenth of a millisecond. */
const maxPerTurn = 16;

/** Limits how many tasks of one kind run in each turn of the event loop, so that others get their turn. First come, first served. */
export class LoopBudget<Task> {
  readonly #run: (task: Task) => void;
  #waiting: Task[] = [];
  #left = maxPerTurn;
  #isPlanned = false;

  constructor(run: (task: Task) => void) {
    this.#run = run;
  }

  /** Runs a task once: now, or in the next turn that has room. */
  spend(task: Task): void {
    this.#planNext();
    if (this.#left === 0) {
      this.#waiting.push(task);
      return;
    }
    this.#left -= 1;
    this.#run(task);
  }

  #planNext(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      const now = this.#waiting.slice(0, maxPerTurn);
      this.#waiting = this.#waiting.slice(maxPerTurn);
      this.#left = maxPerTurn - now.length;
      if (now.length > 0) this.#planNext();
      for (const task of now) this.#run(task);
    });
  }
}

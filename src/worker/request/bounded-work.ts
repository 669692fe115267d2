// Work of which a few pieces run at once, some wait for a while, and the rest is rejected.

/** The bounds of such work. */
export type WorkBounds = {
  readonly maxRunning: number;
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
};

type Waiter = { readonly begin: (mayRun: boolean) => void; readonly timer: NodeJS.Timeout };

/** Runs pieces of work, the first that came first. */
export class BoundedWork {
  readonly #bounds: WorkBounds;
  /** In the order of their arrival. */
  readonly #waiting = new Set<Waiter>();
  #running = 0;

  constructor(bounds: WorkBounds) {
    this.#bounds = bounds;
  }

  /** Resolves with the result of the work; null: too much waits, or it would have waited for too long, and it was not begun. */
  async run<Result extends object>(work: () => Promise<Result>): Promise<Result | null> {
    if (!(await this.#enter())) return null;
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<boolean> {
    const { maxRunning, maxWaiting, maxWaitMs } = this.#bounds;
    if (this.#running < maxRunning) {
      this.#running += 1;
      return true;
    }
    if (this.#waiting.size >= maxWaiting) return false;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(waiter);
        resolve(false);
      }, maxWaitMs);
      const waiter = { begin: resolve, timer };
      this.#waiting.add(waiter);
    });
  }

  /** Gives the place to the first that waits. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#running -= 1;
      return;
    }
    this.#waiting.delete(next);
    clearTimeout(next.timer);
    next.begin(true);
  }
}

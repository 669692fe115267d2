// When it is looked whether those who wait are held up: while somebody waits, at intervals, and never for our own pauses.
// Must not know who waits, nor for what.

/** Looks after those who wait. Whoever creates it must end it. */
export class Relief {
  readonly #everyMs: number;
  readonly #isAnyWaiting: () => boolean;
  readonly #relieve: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  constructor(everyMs: number, isAnyWaiting: () => boolean, relieve: () => void) {
    this.#everyMs = everyMs;
    this.#isAnyWaiting = isAnyWaiting;
    this.#relieve = relieve;
  }

  /** To be called when somebody may have begun to wait. */
  begin(): void {
    if (this.#timer !== null || this.#isEnded || !this.#isAnyWaiting()) return;
    // Timers come before what was read: where it was we who paused, the answers are there a little later.
    this.#timer = setTimeout(() => setImmediate(this.#look), this.#everyMs);
  }

  end(): void {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  readonly #look = (): void => {
    this.#timer = null;
    if (!this.#isEnded) this.#relieve();
    this.begin();
  };
}

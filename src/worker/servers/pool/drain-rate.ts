// How fast the queue drains, measured; from it, when it makes sense to come again.
// Must not know what is waited for. Time comes from outside.

const windowSeconds = 5;
const longestSeconds = 30;

/** Counts requests that have given their connection back, over the last seconds. */
export class DrainRate {
  readonly #counts = new Float64Array(windowSeconds);
  #second: number;
  readonly #since: number;

  /** @param nowMs any clock that does not jump, as in the other methods */
  constructor(nowMs: number) {
    this.#since = nowMs;
    this.#second = Math.floor(nowMs / 1000);
  }

  note(nowMs: number): void {
    this.#moveTo(nowMs);
    const index = this.#second % windowSeconds;
    this.#counts[index] = (this.#counts[index] as number) + 1;
  }

  /** Seconds until those who wait now will have had their turn: whole, from 1 to 30. */
  retryAfterSeconds(waiting: number, nowMs: number): number {
    this.#moveTo(nowMs);
    let drained = 0;
    for (const count of this.#counts) drained += count;
    if (drained === 0) return waiting === 0 ? 1 : longestSeconds;
    // The current second is not over: the window is four seconds and a part, or shorter after the start.
    const full = windowSeconds - 1 + (nowMs % 1000) / 1000;
    const seconds = Math.max(0.001, Math.min(full, (nowMs - this.#since) / 1000));
    const wait = Math.ceil(waiting / (drained / seconds));
    return Math.min(longestSeconds, Math.max(1, wait));
  }

  /** Forgets what is older than the window. */
  #moveTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    const passed = Math.min(second - this.#second, windowSeconds);
    for (let index = 1; index <= passed; index += 1) {
      this.#counts[(this.#second + index) % windowSeconds] = 0;
    }
    this.#second = second;
  }
}

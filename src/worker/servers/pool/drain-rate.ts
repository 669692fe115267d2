// How fast a pool's queue drains: when a rejected client should come again, and whether a new request would wait for too long.
// Time comes from outside, in ms of any clock that does not jump.

const windowSeconds = 5;
const longestSeconds = 30;

/** Counts the sessions that were released in the last seconds. */
export class DrainRate {
  readonly #counts = new Float64Array(windowSeconds);
  #second: number;
  readonly #since: number;

  constructor(nowMs: number) {
    this.#since = nowMs;
    this.#second = Math.floor(nowMs / 1000);
  }

  note(nowMs: number): void {
    this.#moveTo(nowMs);
    const index = this.#second % windowSeconds;
    this.#counts[index] = (this.#counts[index] as number) + 1;
  }

  /** Seconds until all requests that wait now will have had a session: whole, from 1 to 30. */
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

type Window = { readonly since: number; served: number };

/**
 * Counts the requests that left the queue for a session, in windows as long as the longest wait. It gives no verdict before a request has
 * waited for a whole window. Between two windows the one with more counts, and all sessions may come free at once: in doubt it lets a
 * request wait.
 */
export class Backlog {
  readonly #windowMs: number;
  readonly #sessions: number;
  #window: Window = { since: 0, served: 0 };
  /** The rate of the window before; null: no request waited, or not for all of it. */
  #servedBefore: number | null = null;

  /** @param windowMs the longest wait @param sessions how many may come free at once */
  constructor(windowMs: number, sessions: number) {
    this.#windowMs = windowMs;
    this.#sessions = sessions;
  }

  /** A request waits, and none did before. */
  begins(now: number): void {
    this.#window = { since: now, served: 0 };
    this.#servedBefore = null;
  }

  /** One of the waiting requests has got a session. */
  shortened(now: number): void {
    this.#moveTo(now);
    this.#window.served += 1;
  }

  /** Whether a request behind so many others would wait for longer than that. */
  outlasts(ahead: number, longestMs: number, now: number): boolean {
    this.#moveTo(now);
    if (this.#servedBefore === null) return false;
    const served = Math.max(this.#servedBefore, this.#window.served);
    const part = Math.min(longestMs, this.#windowMs) / this.#windowMs;
    return ahead >= this.#sessions + served * part;
  }

  #moveTo(now: number): void {
    const { since, served } = this.#window;
    const passed = Math.floor((now - since) / this.#windowMs);
    if (passed === 0) return;
    // A window without any call was one in which no request was served.
    this.#servedBefore = passed === 1 ? served : 0;
    this.#window = { since: since + passed * this.#windowMs, served: 0 };
  }
}

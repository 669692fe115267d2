// How fast a reader acknowledges what it is sent, over the last two seconds.
// Pure but for its memory. Time comes from outside, in ms of any clock that does not jump.
import type { Acknowledged } from './peers.ts';

/** A slower reader is slow (64 KiB a second, over so long). */
const slowBytesPerSecond = 64 * 1024;
const windowMs = 2_000;
/** Looks that a window must have: if this process stood still, it did not write, and the reader is not to blame. */
const leastLooks = 4;
/** A reader that waits again after so short a time has been waited for all the time, as far as its pace goes. */
const gapMs = 250;

type Look = { readonly at: number; readonly bytes: number };

/** The pace of one reader. */
export class Pace {
  #looks: Look[] = [];
  #isExact = true;
  /** When the reader had taken all; null: it is waited for. */
  #pausedAt: number | null = null;

  /** The reader is waited for from now on. */
  begins(now: number): void {
    if (this.#pausedAt !== null && now - this.#pausedAt > gapMs) this.#looks = [];
    this.#pausedAt = null;
  }

  /** The reader has taken all. */
  pauses(now: number): void {
    this.#pausedAt = now;
  }

  /** Notes what has been acknowledged so far. */
  note({ bytes, isExact }: Acknowledged, now: number): void {
    if (isExact !== this.#isExact) this.#looks = [];
    this.#isExact = isExact;
    // The oldest that is kept begins the window.
    while (this.#looks.length > 1 && now - (this.#looks[1] as Look).at >= windowMs) {
      this.#looks.shift();
    }
    this.#looks.push({ at: now, bytes });
  }

  /** Bytes a second over the window; null: it has not been looked at for as long, or not often enough. */
  get bytesPerSecond(): number | null {
    const [first] = this.#looks;
    const last = this.#looks.at(-1);
    if (first === undefined || last === undefined || this.#looks.length <= leastLooks) return null;
    const tookMs = last.at - first.at;
    return tookMs < windowMs ? null : ((last.bytes - first.bytes) * 1000) / tookMs;
  }

  get isSlow(): boolean {
    const pace = this.bytesPerSecond;
    return pace !== null && pace < slowBytesPerSecond;
  }
}

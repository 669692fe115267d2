// How many descriptors this process has open, and how many it may have.
// Must not know what they are.
import { readdirSync } from 'node:fs';
import { openFilesLimit } from '../http/limits.ts';

/** Listing thousands of descriptors takes milliseconds: not every second. */
const everyMs = 5_000;

/** Looked up now and then. */
export class OpenDescriptors {
  /** The most that the system grants; fixed while the process lives. */
  readonly most = openFilesLimit();
  #count = 0;
  #countedAt = Number.NEGATIVE_INFINITY;

  /** @param now performance.now() */
  count(now: number): number {
    if (now - this.#countedAt < everyMs) return this.#count;
    this.#countedAt = now;
    try {
      // Listing takes a descriptor of its own.
      this.#count = readdirSync('/proc/self/fd').length - 1;
    } catch (error) {
      // No descriptor was left to look with.
      if ((error as NodeJS.ErrnoException).code === 'EMFILE') this.#count = this.most;
    }
    return this.#count;
  }
}

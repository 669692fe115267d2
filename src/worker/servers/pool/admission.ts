// How many requests wait for this server, wherever they do, counted once and against one bound.
// Must not know who they are, nor what each of them waits for.

/** The places of those who wait. */
export class Admission {
  /** Those who wait now. */
  waiting = 0;
  readonly #places: () => number;

  /** @param places how many may wait now */
  constructor(places: () => number) {
    this.#places = places;
  }

  /** Whether more wait than may: the one who came last must leave. */
  get isOverfull(): boolean {
    return this.waiting > this.#places();
  }

  /** Takes a place, which must be given back; false: there is none. */
  admit(): boolean {
    if (this.waiting >= this.#places()) return false;
    this.waiting += 1;
    return true;
  }

  /** Takes a place whether there is one or not: whoever does must look at `isOverfull`. */
  enter(): void {
    this.waiting += 1;
  }

  /** Gives a place back. */
  leave(): void {
    this.waiting -= 1;
  }
}

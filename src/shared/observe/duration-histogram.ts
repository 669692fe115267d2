// Durations counted by bucket, as Prometheus wants them.
// Must not know what took so long, nor who is told.

/** A histogram in the making: an array of counts and a sum, read only when somebody asks. */
export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  /** @param bounds upper ends of the buckets in seconds, ascending; what is longer has a bucket of its own */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(seconds: number): void {
    const bounds = this.#bounds;
    let index = 0;
    while (index < bounds.length && seconds > (bounds[index] as number)) index += 1;
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#sum += seconds;
  }

  /** Observations per bucket (not cumulative), and the sum of all in seconds. */
  read(): { readonly counts: readonly number[]; readonly sum: number } {
    return { counts: [...this.#counts], sum: this.#sum };
  }
}

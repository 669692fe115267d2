// How long to wait before trying again: growing, bounded, jittered.
// Must not know what is tried.

const firstMs = 50;
const mostMs = 10_000;

/** Delays between attempts to connect, for as long as nobody wants the connection: who does may come before its time. */
export class Backoff {
  failures = 0;

  succeeded(): void {
    this.failures = 0;
  }

  /** Notes a failure; returns the delay in ms until the next attempt, between half and all of the step. */
  failed(): number {
    const step = Math.min(firstMs * 2 ** this.failures, mostMs);
    this.failures += 1;
    return step / 2 + (Math.random() * step) / 2;
  }
}

// Those who wait for a session, in the order in which they came.
// Must not know sessions, nor how many may wait: the admission counts them.
import type { Admission } from './admission.ts';
import type { Refusal, Waiter } from './waiter.ts';

/** A queue whose waiters have their places from the admission. */
export class Queue {
  readonly #admission: Admission;
  // No Set, whose outgrown tables would keep V8 from collecting who has left. Few leave from its middle.
  readonly #waiters: Waiter[] = [];

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  get length(): number {
    return this.#waiters.length;
  }

  add(waiter: Waiter): void {
    this.#waiters.push(waiter);
    if (waiter.isOwn !== true) this.#admission.enter();
  }

  /** Gives up waiting. Nothing is called afterwards. */
  remove(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at < 0) return;
    this.#waiters.splice(at, 1);
    this.#leave(waiter);
  }

  /** Hands a waiter's place over. The one who gives it is not called any more. */
  replace(waiter: Waiter, by: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters[at] = by;
  }

  /** Takes out who has waited longest. */
  shift(): Waiter | undefined {
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) this.#leave(waiter);
    return waiter;
  }

  refuseAll(reason: Refusal): void {
    for (const waiter of this.#waiters.splice(0)) {
      this.#leave(waiter);
      waiter.refused(reason);
    }
  }

  #leave({ isOwn }: Waiter): void {
    if (isOwn !== true) this.#admission.leave();
  }
}

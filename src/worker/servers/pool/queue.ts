// Those who wait for a session, in the order in which they came.
// Must not know sessions, nor how many may wait: the admission counts them.
import type { Admission } from './admission.ts';
import type { Refusal, Waiter, WaitLimit } from './waiter.ts';

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

  /** At its end; who is recovering comes before those who are not, and takes no place. */
  add(waiter: Waiter): void {
    if (waiter.isRecovering === true) this.#waiters.splice(this.#recovering, 0, waiter);
    else this.#waiters.push(waiter);
    if (takesPlace(waiter)) this.#admission.enter();
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

  /**
   * Refuses requests that have waited for too long. An identical read that follows one of them takes its place.
   * @param isLate called with each of them and its place, from 0, except with those that are recovering
   */
  refuseLate(isLate: (limit: WaitLimit, place: number) => boolean): void {
    let place = 0;
    while (place < this.#waiters.length) {
      const waiter = this.#waiters[place] as Waiter;
      const { waitLimit, isRecovering } = waiter;
      if (waitLimit === undefined || isRecovering === true || !isLate(waitLimit, place)) {
        place += 1;
        continue;
      }
      const next = waiter.handOverPlace?.() ?? null;
      if (next !== null) this.#waiters[place] = next;
      else {
        this.#waiters.splice(place, 1);
        this.#leave(waiter);
      }
      waiter.refused('waited too long');
    }
  }

  refuseAll(reason: Refusal): void {
    this.#refuse(this.#waiters.splice(0), reason);
  }

  /** The same, but for those who are recovering. */
  refuseNew(reason: Refusal): void {
    this.#refuse(this.#waiters.splice(this.#recovering), reason);
  }

  #refuse(waiters: readonly Waiter[], reason: Refusal): void {
    for (const waiter of waiters) {
      this.#leave(waiter);
      waiter.refused(reason);
    }
  }

  /** They stand at the front. */
  get #recovering(): number {
    const at = this.#waiters.findIndex(({ isRecovering }) => isRecovering !== true);
    return at < 0 ? this.#waiters.length : at;
  }

  #leave(waiter: Waiter): void {
    if (takesPlace(waiter)) this.#admission.leave();
  }
}

function takesPlace({ isOwn, isRecovering }: Waiter): boolean {
  return isOwn !== true && isRecovering !== true;
}

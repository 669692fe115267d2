// What part of a pool may be held over several requests: who wants to hold a session waits until there is room.
// Must not know what it is held for.
import type { Admission } from './admission.ts';
import { Relief } from './relief.ts';
import type { Refusal, WaitLimit } from './waiter.ts';

/** How often it looks for requests that have waited for too long. */
const lateCheckMs = 25;

/** Somebody who wants to hold one. Exactly one of the two is called, once, unless withdrawn. */
export interface Holder {
  /** How long it may wait. */
  readonly waitLimit: WaitLimit;
  /** There is room, which is the holder's until `leave`. */
  admitted(): void;
  refused(reason: Refusal): void;
}

/** The room for held sessions of one pool. */
export class SessionShare {
  /** Those who hold a session, or are about to get one. */
  held = 0;
  readonly #most: () => number;
  readonly #admission: Admission;
  readonly #waiting: Holder[] = [];
  readonly #isLate: (limit: WaitLimit) => boolean;
  readonly #relief = new Relief(
    lateCheckMs,
    () => this.#waiting.length > 0,
    () => this.#refuseLate(),
  );
  #isClosed = false;

  /**
   * @param most how many may be held at one time
   * @param isLate whether a request has waited for too long by now
   */
  constructor(most: () => number, admission: Admission, isLate: (limit: WaitLimit) => boolean) {
    this.#isLate = isLate;
    this.#most = most;
    this.#admission = admission;
  }

  /** How many more may be held now. */
  get room(): number {
    return this.#most() - this.held;
  }

  /** Asks for room: at once, when another one leaves, or not at all. */
  enter(holder: Holder): void {
    if (this.#isClosed) holder.refused('stopping');
    else if (this.room > 0 && this.#waiting.length === 0) this.#admit(holder);
    else if (this.#admission.admit()) {
      this.#waiting.push(holder);
      this.#relief.begin();
    } else holder.refused('queue full');
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(holder: Holder): void {
    const at = this.#waiting.indexOf(holder);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.#admission.leave();
  }

  /** Gives the room back. */
  leave(): void {
    this.held -= 1;
    this.reconsider();
  }

  /** There may be more room than before. */
  reconsider(): void {
    while (this.room > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#admission.leave();
      this.#admit(next);
    }
  }

  /** Nobody is admitted any more. */
  close(): void {
    this.#isClosed = true;
    this.#relief.end();
    for (const holder of this.#waiting.splice(0)) {
      this.#admission.leave();
      holder.refused('stopping');
    }
  }

  #refuseLate(): void {
    for (const holder of this.#waiting.filter(({ waitLimit }) => this.#isLate(waitLimit))) {
      this.withdraw(holder);
      holder.refused('waited too long');
    }
  }

  #admit(holder: Holder): void {
    this.held += 1;
    holder.admitted();
  }
}

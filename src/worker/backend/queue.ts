// Those who wait for a session, in the order in which they came, and how many there may be.
// Must not know sessions.
import type { Refusal, Waiter } from './waiter.ts';

/** The queue for those who wait behind another one, for what that one will get. */
export interface Admission {
  /** Takes a place; false: there is none. */
  admit(): boolean;
  /** Gives so many places back. */
  leave(count: number): void;
}

/** A bounded queue. Guests wait behind one of the others for what that one will get: they too have places. */
export class Queue implements Admission {
  readonly #places: () => number;
  // No Set, whose outgrown tables would keep V8 from collecting who has left. Few leave from its middle.
  readonly #waiters: Waiter[] = [];
  #guests = 0;

  /** @param places how many may wait now */
  constructor(places: () => number) {
    this.#places = places;
  }

  /** All who wait, guests included. */
  get length(): number {
    return this.#waiters.length + this.#guests;
  }

  /** Those who wait for a session of their own. */
  get waiters(): number {
    return this.#waiters.length;
  }

  get isOverfull(): boolean {
    return this.length > this.#places();
  }

  /** Whether there is a place, where `others` count who wait elsewhere. */
  hasRoomBeside(others: number): boolean {
    return this.length + others < this.#places();
  }

  add(waiter: Waiter): void {
    this.#waiters.push(waiter);
  }

  /** Gives up waiting. Nothing is called afterwards. */
  remove(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters.splice(at, 1);
  }

  /** Takes a place for a guest; false: there is none. */
  admit(): boolean {
    if (this.length >= this.#places()) return false;
    this.#guests += 1;
    return true;
  }

  /** Gives back the places of so many guests. */
  leave(count: number): void {
    this.#guests -= count;
  }

  /** Takes out who has waited longest. */
  shift(): Waiter | undefined {
    return this.#waiters.shift();
  }

  refuseAll(reason: Refusal): void {
    for (const waiter of this.#waiters.splice(0)) waiter.refused(reason);
  }
}

// The requests that wait for a session: how they wait, how many may, and how long.
import type { ConnectFailureKind } from '../../../shared/failure-codes.ts';
import type { Session } from './session.ts';

/** Why a request did not get a session; its statement never reached MySQL. */
export type Refusal = 'queue full' | 'waited too long' | 'stopping' | ConnectFailureKind;

/** How long a request may wait behind others. `max_wait` is a limit beside it. */
export type WaitLimit = {
  /** When the request began to wait (performance.now). */
  readonly since: number;
  /** A quarter of the request's deadline, in ms. */
  readonly longestMs: number;
};

/** A request that wants a session. Exactly one of `granted` and `refused` is called, once, unless it is withdrawn. */
export interface Waiter {
  /** The gateway's own, and no request: it waits in the same order, but takes no place of `queue`. */
  readonly isOwn?: boolean;
  /** It has lost its session and must find out what became of its statement: it comes first, also while the server cannot be reached. */
  readonly isRecovering?: boolean;
  /** Missing: it may wait for any time. */
  readonly waitLimit?: WaitLimit;
  /** Called when it has waited for too long. Returns what takes its place in the queue; null, or missing: nothing does. */
  handOverPlace?(): Waiter | null;
  /**
   * The session is the waiter's until it is released.
   * @param openingSince when its connection began to be opened (performance.now), if that has just ended; null: it was open before
   */
  granted(session: Session, openingSince: number | null): void;
  refused(reason: Refusal): void;
}

/** Counts the requests that wait for one server, in the pool's queue and elsewhere, against one bound. */
export class Admission {
  waiting = 0;
  readonly #places: () => number;

  /** @param places how many may wait now */
  constructor(places: () => number) {
    this.#places = places;
  }

  /** Whether more requests wait than may: the last one must leave. */
  get isOverfull(): boolean {
    return this.waiting > this.#places();
  }

  /** Takes a place, which the caller must give back by `leave`; false: there is none. */
  admit(): boolean {
    if (this.waiting >= this.#places()) return false;
    this.waiting += 1;
    return true;
  }

  /** Takes a place in any case. The caller must check `isOverfull`. */
  enter(): void {
    this.waiting += 1;
  }

  leave(): void {
    this.waiting -= 1;
  }
}

/** A queue in the order of arrival. Its waiters have their places from the admission. */
export class Queue {
  readonly #admission: Admission;
  // Not a Set: its outgrown tables would keep V8 from collecting former waiters. Few leave from the middle.
  readonly #waiters: Waiter[] = [];

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  get length(): number {
    return this.#waiters.length;
  }

  /** Adds a waiter at the end. A recovering waiter comes before all others, and takes no place. */
  add(waiter: Waiter): void {
    if (waiter.isRecovering === true) this.#waiters.splice(this.#recovering, 0, waiter);
    else this.#waiters.push(waiter);
    if (takesPlace(waiter)) this.#admission.enter();
  }

  /** Removes a waiter, which is not called afterwards. */
  remove(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at < 0) return;
    this.#waiters.splice(at, 1);
    this.#leave(waiter);
  }

  /** Gives a waiter's place to another one. The former waiter is not called afterwards. */
  replace(waiter: Waiter, by: Waiter): void {
    const at = this.#waiters.indexOf(waiter);
    if (at >= 0) this.#waiters[at] = by;
  }

  /** Removes the first waiter. */
  shift(): Waiter | undefined {
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) this.#leave(waiter);
    return waiter;
  }

  /**
   * Refuses requests that have waited for too long. An identical read that follows one of them takes its place.
   * @param isLate called with each request and its place, from 0, except those that are recovering
   * @param reason why no session came in time
   */
  refuseLate(isLate: (limit: WaitLimit, place: number) => boolean, reason: Refusal): void {
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
      waiter.refused(reason);
    }
  }

  refuseAll(reason: Refusal): void {
    this.#refuse(this.#waiters.splice(0), reason);
  }

  /** Refuses all waiters except the recovering ones. */
  refuseNew(reason: Refusal): void {
    this.#refuse(this.#waiters.splice(this.#recovering), reason);
  }

  #refuse(waiters: readonly Waiter[], reason: Refusal): void {
    for (const waiter of waiters) {
      this.#leave(waiter);
      waiter.refused(reason);
    }
  }

  /** The number of recovering waiters, which are the first. */
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

/** Checks at intervals, while any request waits, whether one has waited for too long. Its owner must end it. */
export class LateCheck {
  readonly #everyMs: number;
  readonly #isAnyWaiting: () => boolean;
  readonly #check: () => void;
  #timer: NodeJS.Timeout | null = null;
  #isEnded = false;

  constructor(everyMs: number, isAnyWaiting: () => boolean, check: () => void) {
    this.#everyMs = everyMs;
    this.#isAnyWaiting = isAnyWaiting;
    this.#check = check;
  }

  /** Must be called when a request may have begun to wait. */
  begin(): void {
    if (this.#timer !== null || this.#isEnded || !this.#isAnyWaiting()) return;
    // Timers run before sockets are read. If this process itself was paused, the answers arrive a little later.
    this.#timer = setTimeout(() => setImmediate(this.#run), this.#everyMs);
  }

  end(): void {
    this.#isEnded = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  readonly #run = (): void => {
    this.#timer = null;
    if (!this.#isEnded) this.#check();
    this.begin();
  };
}

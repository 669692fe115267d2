// The requests that wait for a session: how they wait, how many may, and how long.
import type { ConnectFailureKind } from '../../../shared/failure-codes.ts';
import type { Account } from '../account.ts';
import type { Queued } from './client-line.ts';
import { FairQueue, type TurnRules } from './fair-queue.ts';
import type { PoolAccount, PoolAccounts } from './pool-accounts.ts';
import type { Session } from './session.ts';
import type { RequestOwner, WaitLimit } from './wait-limit.ts';
import { type Excess, leavesBefore, type Newcomer, type Waitlist } from './waitlist.ts';

/** Why a request found no place to wait. */
export type NoPlace = 'queue full' | 'client busy';

/** Why a request did not get a session; its statement never reached MySQL. */
export type Refusal = NoPlace | 'waited too long' | 'stopping' | ConnectFailureKind;

/** Something that wants a session. Exactly one of `granted` and `refused` is called, once, unless it is withdrawn. */
export interface Waiter {
  /** Missing: it is the gateway's own, and no request. It comes before requests, may wait for any time, and takes no place of `queue`. */
  readonly waitLimit?: WaitLimit;
  /** It has lost its session and must find out what became of its statement: it comes first, also while the server cannot be reached. */
  readonly isRecovering?: boolean;
  /** Called when it has waited for too long, or its place is needed. Returns what takes its place in the queue; null, or missing: nothing does. */
  handOverPlace?(): RequestWaiter | null;
  /**
   * The session is the waiter's until it is released.
   * @param openingSince when its connection began to be opened (performance.now), if that has just ended; null: it was open before
   */
  granted(session: Session, openingSince: number | null): void;
  refused(reason: Refusal): void;
}

/** A request that wants a session. */
export interface RequestWaiter extends Waiter {
  readonly waitLimit: WaitLimit;
}

/** Counts the requests that wait for one server, in the pool's queue and elsewhere, against one bound, and against that of each client. */
export class Admission {
  waiting = 0;
  readonly #places: () => number;
  readonly #spare: () => number;
  readonly #waitlists: Waitlist[] = [];

  /**
   * @param places how many may wait now
   * @param spare how many of those need not count for their client
   */
  constructor(places: () => number, spare: () => number = () => 0) {
    this.#places = places;
    this.#spare = spare;
  }

  /** Requests that wait there may lose their places to those of other clients and users. */
  addWaitlist(waitlist: Waitlist): void {
    this.#waitlists.push(waitlist);
  }

  /** Whether more requests wait than may: one must leave. */
  get isOverfull(): boolean {
    return this.waiting > this.#places();
  }

  /** Whether more requests of a client wait than may: the last one must leave. */
  isBusy(account: Account): boolean {
    return account.waiting > account.places + this.#spare();
  }

  /** Takes a place, which the caller must give back by `leave`; otherwise returns why there is none. */
  admit({ account, user }: RequestOwner): NoPlace | null {
    this.enter(account);
    let reason: NoPlace | null = null;
    if (this.isBusy(account)) reason = 'client busy';
    else if (!this.hasPlaceFor({ account, user, more: 1 })) reason = 'queue full';
    if (reason !== null) this.leave(account);
    return reason;
  }

  /**
   * Whether a request that has taken a place may keep it. If the queue is full, the newest request of the client with the longest queue for
   * its share is rejected, and may be that one.
   */
  hasPlaceFor(newcomer: Newcomer): boolean {
    if (!this.isOverfull) return true;
    let longest: (Excess<Queued> & { readonly waitlist: Waitlist }) | null = null;
    for (const waitlist of this.#waitlists) {
      const found = waitlist.findExcess(newcomer);
      if (found !== null && (longest === null || leavesBefore(found, longest))) {
        longest = { ...found, waitlist };
      }
    }
    if (longest === null) return false;
    longest.waitlist.reject(longest.item);
    return true;
  }

  /** Takes a place in any case. The caller must check `isBusy` and `isOverfull`. */
  enter(account: Account): void {
    this.waiting += 1;
    account.waiting += 1;
  }

  leave(account: Account): void {
    this.waiting -= 1;
    account.waiting -= 1;
  }
}

/** The pool's queue: recovering requests come first, then the gateway's own, then clients in turn. Requests have their places from the admission. */
export class Queue implements Waitlist {
  readonly #admission: Admission;
  readonly #accounts: PoolAccounts;
  readonly #mayTakeOwn: () => boolean;
  /** Recovering waiters. They take no place. */
  readonly #recovering: Waiter[] = [];
  /** The gateway's own. */
  readonly #own: Waiter[] = [];
  // Not a Set: its outgrown tables would keep V8 from collecting former waiters. Few leave from the middle.
  readonly #requests: FairQueue<RequestWaiter>;

  /** @param mayTakeOwn whether the gateway itself may have a session now */
  constructor(
    admission: Admission,
    accounts: PoolAccounts,
    rules: TurnRules,
    mayTakeOwn: () => boolean,
  ) {
    this.#admission = admission;
    this.#accounts = accounts;
    this.#mayTakeOwn = mayTakeOwn;
    this.#requests = new FairQueue(accounts, rules);
    admission.addWaitlist(this);
  }

  get length(): number {
    return this.#recovering.length + this.#own.length + this.#requests.length;
  }

  /** How many sessions could be used at once: a client at `max_in_flight` uses none. */
  get wanted(): number {
    return this.#recovering.length + this.#own.length + this.#requests.countReady();
  }

  /** How many requests of its client would be served before a further one of that user. */
  aheadOf(account: PoolAccount, user: string | null): number {
    return this.#requests.aheadOf(account, user);
  }

  /** How many requests of a client are in the queue. */
  waitingOf(account: PoolAccount): number {
    return this.#requests.waitingOf(account);
  }

  /** Adds a waiter behind those of its kind. */
  add(waiter: Waiter, now: number): void {
    if (waiter.isRecovering === true) this.#recovering.push(waiter);
    else if (!isRequest(waiter)) this.#own.push(waiter);
    else {
      this.#accounts.noteWait(this.#requests.length === 0, now);
      this.#requests.add(waiter);
      this.#admission.enter(waiter.waitLimit.account);
    }
  }

  /** Removes a waiter, which is not called afterwards. */
  remove(waiter: Waiter): void {
    const line = this.#lineOf(waiter);
    if (line === null) this.#removeRequest(waiter as RequestWaiter);
    else if (line.includes(waiter)) line.splice(line.indexOf(waiter), 1);
  }

  /** Gives a waiter's place to another one. The former waiter is not called afterwards. */
  replace(waiter: RequestWaiter, by: RequestWaiter): void {
    if (!this.#requests.replace(waiter, by)) return;
    this.#admission.enter(by.waitLimit.account);
    this.#leave(waiter);
  }

  /** Removes the waiter that is next, if any may have a session now. */
  take(now: number): Waiter | undefined {
    const first = this.#recovering.shift();
    if (first !== undefined) return first;
    if (this.#own.length > 0 && this.#mayTakeOwn()) return this.#own.shift();
    if (this.#requests.length === 0) return undefined;
    const request = this.#requests.take(now);
    if (request !== undefined) {
      this.#accounts.noteWait(false, now);
      this.#leave(request);
    }
    return request;
  }

  /**
   * Refuses requests that have waited for too long. An identical read that follows one of them takes its place.
   * @param patient how many of the oldest wait for a connection that is being opened
   * @param isLate called with each request, except those that are recovering
   * @param reason why no session came in time
   */
  refuseLate(
    patient: number,
    isLate: (limit: WaitLimit, isPatient: boolean) => boolean,
    reason: Refusal,
  ): void {
    const all = [...this.#requests];
    if (patient > 0) all.sort((one, other) => one.waitLimit.since - other.waitLimit.since);
    const oldest = Math.max(0, patient - this.#own.length - this.#recovering.length);
    for (const [place, request] of all.entries()) {
      if (isLate(request.waitLimit, place < oldest)) this.#refuse(request, reason);
    }
  }

  findExcess(newcomer: Newcomer): Excess<RequestWaiter> | null {
    return this.#requests.findExcess(newcomer);
  }

  reject(request: RequestWaiter): void {
    this.#refuse(request, 'queue full');
  }

  refuseAll(reason: Refusal): void {
    for (const waiter of [...this.#recovering.splice(0), ...this.#own.splice(0)]) {
      waiter.refused(reason);
    }
    this.#refuseRequests(reason);
  }

  /** Refuses all waiters except the recovering ones. */
  refuseNew(reason: Refusal): void {
    for (const waiter of this.#own.splice(0)) waiter.refused(reason);
    this.#refuseRequests(reason);
  }

  #refuseRequests(reason: Refusal): void {
    const all = this.#requests.clear();
    for (const request of all) this.#leave(request);
    for (const request of all) request.refused(reason);
  }

  /** An identical read that follows it takes its place. */
  #refuse(request: RequestWaiter, reason: Refusal): void {
    // The refusal of another one may have ended it.
    if (!this.#requests.has(request)) return;
    const next = request.handOverPlace?.() ?? null;
    if (next === null) this.#removeRequest(request);
    else this.replace(request, next);
    request.refused(reason);
  }

  #removeRequest(request: RequestWaiter): void {
    if (this.#requests.remove(request)) this.#leave(request);
  }

  #leave({ waitLimit }: RequestWaiter): void {
    this.#admission.leave(waitLimit.account);
  }

  /** Null: it is among the requests. */
  #lineOf(waiter: Waiter): Waiter[] | null {
    if (waiter.isRecovering === true) return this.#recovering;
    return isRequest(waiter) ? null : this.#own;
  }
}

/** Whether it is a client's, and not the gateway's own. */
export function isRequest(waiter: Waiter): waiter is RequestWaiter {
  return waiter.waitLimit !== undefined;
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

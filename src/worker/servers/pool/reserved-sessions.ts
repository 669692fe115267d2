// The sessions of a pool that clients reserve over several requests: at most half of the pool. Further clients wait until there is room.
import { performance } from 'node:perf_hooks';
import type { Account } from '../account.ts';
import type { Queued } from './client-line.ts';
import { FairQueue } from './fair-queue.ts';
import type { Pool } from './pool.ts';
import { keptFree, type PoolAccount, reservedRoom } from './pool-accounts.ts';
import { LateCheck, type Refusal } from './queue.ts';
import type { Excess, Newcomer, Waitlist } from './waitlist.ts';

/** How often it refuses requests that have waited for too long. */
const lateCheckMs = 25;

/** A request that wants to reserve a session. Exactly one of the two is called, once, unless withdrawn. */
export interface Reserving extends Queued {
  /** There is room, which the request must release. */
  reserved(): void;
  refused(reason: Refusal): void;
}

/** The parts of the pool that it uses. */
type ReservedPool = Pick<Pool, 'size' | 'admission' | 'accounts' | 'isLate'>;

/** The room for reserved sessions in one pool. Clients take turns as in the pool's queue, and a part of the room is for those below their share. */
export class ReservedSessions implements Waitlist {
  /** Sessions that are reserved, or about to be. */
  count = 0;
  readonly #pool: ReservedPool;
  readonly #waiting: FairQueue<Reserving>;
  readonly #lateCheck = new LateCheck(
    lateCheckMs,
    () => this.#waiting.length > 0,
    () => {
      this.#refuseLate();
      // The room that is kept depends on which clients were seen in the last minute.
      this.#fill();
    },
  );
  #inPipeline = 0;
  #isClosed = false;

  constructor(pool: ReservedPool) {
    this.#pool = pool;
    this.#waiting = new FairQueue(pool.accounts, {
      mayTake: (own) => this.#mayTake(own),
      isBelowShare: (own) => this.#isBelowShare(own),
    });
    pool.admission.addWaitlist(this);
    // Before the pool: a BEGIN enters the line of its client, and later requests do not pass it again and again.
    pool.accounts.onRoom(() => this.#fill());
  }

  /**
   * How many more sessions may be reserved now. At most half of the pool is, rounded up. While the pipeline has the other half, one less is:
   * some statements cannot run in the pipeline.
   */
  get room(): number {
    return this.#max - this.count;
  }

  get #max(): number {
    const { size } = this.#pool;
    const half = Math.ceil(size / 2);
    return this.#inPipeline === 0 ? half : Math.min(half, size - this.#inPipeline - 1);
  }

  /** Whether a client has reserved less than its share of what may be reserved. */
  #isBelowShare(own: PoolAccount): boolean {
    return own.reserved < this.#pool.accounts.shareOf(own, this.#max);
  }

  #mayTake(own: PoolAccount): boolean {
    if (!mayRun(own)) return false;
    const forOthers = this.#pool.accounts.isShared ? reservedRoom(this.#max) : 0;
    return (
      this.room > keptFree(forOthers, this.count - own.reserved) ||
      (this.room > 0 && this.#isBelowShare(own))
    );
  }

  /** Asks for room: at once, when a session is released, or not at all. */
  acquire(request: Reserving): void {
    if (this.#isClosed) {
      request.refused('stopping');
      return;
    }
    const { admission, accounts } = this.#pool;
    const { account } = request.waitLimit;
    const now = performance.now();
    const own = accounts.arrive(account, now);
    if (this.#waiting.waitingOf(own) === 0 && this.#mayTake(own)) {
      this.#reserve(request);
      return;
    }
    const noPlace = admission.admit(request.waitLimit);
    if (noPlace !== null) {
      request.refused(noPlace);
      return;
    }
    accounts.noteWait(this.#waiting.length === 0, now);
    this.#waiting.add(request);
    this.#lateCheck.begin();
  }

  findExcess(newcomer: Newcomer): Excess<Reserving> | null {
    return this.#waiting.findExcess(newcomer);
  }

  reject(request: Reserving): void {
    if (!this.#waiting.remove(request)) return;
    this.#leave(request);
    request.refused('queue full');
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(request: Reserving): void {
    if (this.#waiting.remove(request)) this.#leave(request);
  }

  /** Notes that a request has the session for which it has room. */
  noteSession(account: Account): void {
    this.#pool.accounts.of(account).pending -= 1;
  }

  /** Gives room back. If its request never had a session, call `noteSession` before. */
  release(account: Account): void {
    this.count -= 1;
    this.#pool.accounts.of(account).reserved -= 1;
    this.#fill();
  }

  /** Notes how many sessions the pipeline has now. */
  notePipeline(sessions: number): void {
    this.#inPipeline = sessions;
    this.#fill();
  }

  /** Refuses the requests that wait, and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#lateCheck.end();
    const all = this.#waiting.clear();
    for (const request of all) {
      this.#leave(request);
      request.refused('stopping');
    }
  }

  #fill(): void {
    while (this.room > 0 && this.#waiting.length > 0) {
      const now = performance.now();
      const next = this.#waiting.take(now);
      if (next === undefined) return;
      this.#pool.accounts.noteWait(false, now);
      this.#leave(next);
      this.#reserve(next);
    }
  }

  #refuseLate(): void {
    const now = performance.now();
    const late = [...this.#waiting].filter(({ waitLimit }) => this.#pool.isLate(waitLimit, now));
    for (const request of late) {
      // The refusal of another one may have ended it.
      if (!this.#waiting.remove(request)) continue;
      this.#leave(request);
      request.refused('waited too long');
    }
  }

  #leave({ waitLimit }: Reserving): void {
    this.#pool.admission.leave(waitLimit.account);
  }

  #reserve(request: Reserving): void {
    this.count += 1;
    const own = this.#pool.accounts.of(request.waitLimit.account);
    own.reserved += 1;
    own.pending += 1;
    request.reserved();
  }
}

/** At `max_in_flight` a BEGIN would only keep its place from other clients. */
function mayRun({ account, pending }: PoolAccount): boolean {
  return account.room > pending;
}

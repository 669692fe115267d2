// The accounts of the clients at one pool: what each holds of it, what its share is, and whose turn it is.
import { performance } from 'node:perf_hooks';
import { type Account, HeldTime } from '../account.ts';
import { Backlog, DrainRate } from './drain-rate.ts';

/** How long a client counts after its last request. */
export const seenMs = 60_000;
/** If no request has waited for this time, the time before counts no more: no client was kept from a connection by it. */
const levelAfterMs = 10_000;
/** Smaller pools have no reserved room. */
const minSizeForRoom = 4;
const partsOfPool = 8;

/**
 * How many of so many connections only clients below their share may have, while there are several clients. With an eighth reserved, and
 * statements of 200 ms on 500 connections of another client, a client of two connections waits for 1.5 ms at most instead of 93.
 */
export function reservedRoom(size: number): number {
  return size < minSizeForRoom ? 0 : Math.max(1, Math.floor(size / partsOfPool));
}

/**
 * How many free connections a client that has its share must leave to others. The connections that the others hold are a part of the reserved
 * ones. So a loud client beside quiet ones has all that are not reserved. If the others hold more than that, they are not quiet, and the
 * whole room stays free for further clients.
 */
export function keptFree(reserved: number, heldByOthers: number): number {
  return heldByOthers > reserved ? reserved : reserved - heldByOthers;
}

/**
 * One client at one pool.
 *
 *     new ──> seen ──> forgotten    nothing of it runs or waits, and its last request is a minute ago
 */
export class PoolAccount {
  readonly account: Account;
  readonly held = new HeldTime();
  /** Requests of it in the fair queues of this pool. */
  waiting = 0;
  /** Its sessions that are reserved over several requests, or about to be. */
  reserved = 0;
  /** Those of them that it does not have yet: each will take one of `max_in_flight`. */
  pending = 0;
  /** The latest moment at which it was seen (performance.now). */
  seenAt: number;
  /** Estimated time of what was chosen in this moment and runs soon, so that one choice among many takes turns. In ms. */
  pledgedMs = 0;
  /** The rate at which its waiting requests get sessions. */
  readonly backlog: Backlog;
  readonly #drainRate: DrainRate;
  /** Subtracted from its held time, so that it starts level with others. In ms. */
  #uncountedMs = 0;
  #epoch = -1;

  constructor(account: Account, backlog: Backlog, now: number) {
    this.account = account;
    this.backlog = backlog;
    this.seenAt = now;
    this.#drainRate = new DrainRate(now);
  }

  get share(): number {
    return this.account.client.share;
  }

  /** The time for which its requests have held connections, divided by its share. The client with the least is the next one. */
  costAt(now: number): number {
    return (this.held.at(now) - this.#uncountedMs + this.pledgedMs) / this.share;
  }

  /** A request of it arrives: if nothing of it ran or waited, it starts level with those that wait. @param level their cost */
  arrive(epoch: number, level: number, now: number): void {
    this.seenAt = now;
    this.renew(epoch, level, now);
    if (this.held.running === 0 && this.waiting === 0 && this.costAt(now) < level) {
      this.#start(level, now);
    }
  }

  /** In a new epoch it starts level with the others. */
  renew(epoch: number, level: number, now: number): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#start(level, now);
  }

  #start(cost: number, now: number): void {
    this.#uncountedMs = this.held.at(now) - cost * this.share;
  }

  /** A request of it has a session from now on. */
  begin(now: number): void {
    this.seenAt = now;
    this.held.begin(now);
    this.account.held.begin(now);
    this.account.enter();
  }

  /** @param since when `begin` was called */
  end(since: number, now: number): void {
    this.seenAt = now;
    this.held.end(since, now);
    this.account.held.end(since, now);
    this.#drainRate.note(now);
    this.account.leave();
  }

  /** Adds the time of a statement that has shared a session with others. */
  add(ms: number): void {
    this.held.add(ms);
    this.account.held.add(ms);
  }

  /** Seconds until its waiting requests will have had a session. */
  retryAfterSeconds(now: number): number {
    return this.#drainRate.retryAfterSeconds(this.waiting, now);
  }
}

/**
 * The accounts at one pool of the clients that were seen in the last minute.
 *
 * Held time counts within an epoch: a time in which requests wait, with pauses of ten seconds at most. While no request waits, a client
 * keeps no other one from a connection, so its time does not count.
 */
export class PoolAccounts {
  readonly #size: number;
  readonly #maxWaitMs: number;
  /** Called when a client may run more than before. */
  readonly #listeners: (() => void)[] = [];
  readonly #seen = new Map<Account, PoolAccount>();
  readonly #forget = new Map<PoolAccount, () => void>();
  #shares = 0;
  #epoch = 0;
  /** The least cost of those that wait. It only grows within an epoch. */
  #level = 0;
  #waitedAt = Number.NEGATIVE_INFINITY;

  /**
   * @param size the number of the pool's connections
   * @param maxWaitMs the longest wait of a request
   */
  constructor(size: number, maxWaitMs: number) {
    this.#size = size;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Calls `listener` when a client may run more than before, until these accounts are closed. The one that was added last comes first. */
  onRoom(listener: () => void): void {
    this.#listeners.unshift(listener);
  }

  /** Whether more than one client was seen in the last minute. */
  get isShared(): boolean {
    return this.#seen.size > 1;
  }

  /** Notes that a request of a client has come. Returns its account here. */
  arrive(account: Account, now: number): PoolAccount {
    const own = this.#seen.get(account) ?? this.#add(account, now);
    own.arrive(this.#epoch, this.#level, now);
    return own;
  }

  /** The account of a client that has a request here. */
  of(account: Account): PoolAccount {
    return this.#seen.get(account) ?? this.#add(account, performance.now());
  }

  /** The account of a client; undefined: it was not seen in the last minute. */
  find(account: Account): PoolAccount | undefined {
    return this.#seen.get(account);
  }

  /** The held time of a client for its share, in this epoch. The client with the least is the next one. */
  costOf(own: PoolAccount, now: number): number {
    own.renew(this.#epoch, this.#level, now);
    return own.costAt(now);
  }

  /** The share of a client in so many connections: at least one. */
  shareOf({ share }: PoolAccount, connections: number): number {
    return Math.max(1, (connections * share) / this.#shares);
  }

  /** Notes that a request waits, or has got what it waited for. @param isFirst whether no request waited before */
  noteWait(isFirst: boolean, now: number): void {
    if (isFirst && now - this.#waitedAt > levelAfterMs) {
      this.#epoch += 1;
      this.#level = 0;
    }
    this.#waitedAt = now;
  }

  /** Notes the least cost of those that wait. */
  raiseLevel(cost: number): void {
    if (cost > this.#level) this.#level = cost;
  }

  /** Forgets clients that were not seen for a minute, and takes over shares that have changed. To be called every few seconds. */
  sweep(now: number): void {
    this.#shares = 0;
    for (const [account, own] of this.#seen) {
      const isIdle = own.held.running + own.waiting + own.reserved === 0;
      if (isIdle && now - own.seenAt > seenMs) {
        this.#seen.delete(account);
        this.#forget.get(own)?.();
        this.#forget.delete(own);
      } else {
        this.#shares += own.share;
      }
    }
  }

  /** No client is called any more. */
  close(): void {
    for (const forget of this.#forget.values()) forget();
  }

  #add(account: Account, now: number): PoolAccount {
    const own = new PoolAccount(account, new Backlog(this.#maxWaitMs, this.#size), now);
    this.#seen.set(account, own);
    this.#shares += own.share;
    const wake = () => {
      for (const listener of this.#listeners) listener();
    };
    this.#forget.set(own, account.onRoom(wake));
    return own;
  }
}

// A queue in which clients take turns by the time for which they have held connections, and the users of a client one after the other.
import { ClientLine, type Queued } from './client-line.ts';
import type { PoolAccount, PoolAccounts } from './pool-accounts.ts';
import { type Excess, findExcess, type Newcomer } from './waitlist.ts';

/** The rules by which clients are served now, or wait. */
export interface TurnRules {
  mayTake(account: PoolAccount): boolean;
  /** Whether the client has less than its share: it comes before all that have more. */
  isBelowShare(account: PoolAccount): boolean;
}

/**
 * A queue of requests. A client is here while requests of it wait, and its place in the order changes with what it holds elsewhere:
 *
 *     absent ──> waiting, may take ──> absent     the last of its requests is served, or leaves
 *                    │    ^
 *                    v    │
 *                waiting, may not take            at max_in_flight, or only reserved room is left
 */
export class FairQueue<Item extends Queued> {
  length = 0;
  readonly #accounts: PoolAccounts;
  readonly #rules: TurnRules;
  /** Those of clients that wait, in the order in which they have begun to. */
  readonly #lines: ClientLine<Item, PoolAccount>[] = [];
  /** Those of all clients that have waited lately: a client that waits again needs no new one. */
  readonly #kept = new Map<PoolAccount, ClientLine<Item, PoolAccount>>();

  constructor(accounts: PoolAccounts, rules: TurnRules) {
    this.#accounts = accounts;
    this.#rules = rules;
  }

  /** Adds a request behind the others of its user. */
  add(item: Item): void {
    const account = this.#accounts.of(item.waitLimit.account);
    const line = this.#kept.get(account) ?? this.#keep(account);
    if (line.length === 0) this.#lines.push(line);
    line.add(item);
    account.waiting += 1;
    this.length += 1;
  }

  /** Removes the request that is next, if any may be served now. */
  take(now: number): Item | undefined {
    const line = this.#next(now);
    if (line === undefined) return undefined;
    const item = line.take();
    this.#left(line, 1);
    return item;
  }

  /** Removes all requests, in the order of their arrival; null: they are of several users, or there are none. */
  takeAll(): Item[] | null {
    const [line, another] = this.#lines;
    if (line === undefined || another !== undefined) return null;
    const items = line.takeAll();
    if (items !== null) this.#left(line, items.length);
    return items;
  }

  has(item: Item): boolean {
    return this.#lineOf(item)?.has(item) === true;
  }

  /** Removes a request; returns whether it was there. */
  remove(item: Item): boolean {
    const line = this.#lineOf(item);
    if (line?.remove(item) !== true) return false;
    this.#left(line, 1);
    return true;
  }

  /** Gives a request's place to another one, if both are of one user; another user's request is added at the end. */
  replace(item: Item, by: Item): boolean {
    const { account, user } = item.waitLimit;
    if (by.waitLimit.account === account && by.waitLimit.user === user) {
      return this.#lineOf(item)?.replace(item, by) === true;
    }
    if (!this.remove(item)) return false;
    this.add(by);
    return true;
  }

  /** Removes all requests. */
  clear(): readonly Item[] {
    const items = [...this];
    for (const line of this.#lines) line.account.waiting -= line.length;
    this.#lines.length = 0;
    this.#kept.clear();
    this.length = 0;
    return items;
  }

  /** How many requests may be served at once, if there are connections enough. */
  countReady(): number {
    let count = 0;
    for (const { length, account } of this.#lines) {
      count += Math.max(0, Math.min(length, account.account.room));
    }
    return count;
  }

  /** How many requests of its client would be served before a further one of that user. */
  aheadOf(account: PoolAccount, user: string | null): number {
    const line = this.#kept.get(account);
    return line === undefined || line.length === 0 ? 0 : line.aheadOf(user);
  }

  /** How many requests of a client wait. */
  waitingOf(account: PoolAccount): number {
    return this.#kept.get(account)?.length ?? 0;
  }

  /** The request that leaves if one must, with the weight of its client at this pool. Null: that is the newcomer. */
  findExcess(newcomer: Newcomer): Excess<Item> | null {
    const { account, more } = newcomer;
    const own = this.#accounts.of(account);
    const weightOf = (one: PoolAccount) => (one.waiting + (one === own ? more : 0)) / one.share;
    return findExcess(
      this.#lines,
      this.#kept.get(own),
      newcomer,
      ({ account: one }) => weightOf(one),
      weightOf(own),
    );
  }

  /** In no order that is promised between clients. */
  *[Symbol.iterator](): Generator<Item> {
    for (const line of this.#lines) yield* line;
  }

  /** The line of the client that is next. */
  #next(now: number): ClientLine<Item, PoolAccount> | undefined {
    let next: ClientLine<Item, PoolAccount> | undefined;
    let isNextBelow = false;
    let minCost = Number.POSITIVE_INFINITY;
    let nextCost = Number.POSITIVE_INFINITY;
    for (const line of this.#lines) {
      const cost = this.#accounts.costOf(line.account, now);
      if (cost < minCost) minCost = cost;
      // It cannot be the next one, whatever the rules say. With 200 clients that wait, a simulation takes a third less time.
      if (isNextBelow && cost >= nextCost) continue;
      if (!this.#rules.mayTake(line.account)) continue;
      const isBelow = this.#rules.isBelowShare(line.account);
      if (isBelow === isNextBelow ? cost < nextCost : isBelow) {
        next = line;
        nextCost = cost;
        isNextBelow = isBelow;
      }
    }
    if (next !== undefined) this.#accounts.raiseLevel(minCost);
    return next;
  }

  #lineOf({ waitLimit }: Item): ClientLine<Item, PoolAccount> | undefined {
    const account = this.#accounts.find(waitLimit.account);
    return account === undefined ? undefined : this.#kept.get(account);
  }

  #left(line: ClientLine<Item, PoolAccount>, count: number): void {
    line.account.waiting -= count;
    this.length -= count;
    if (line.length === 0) this.#lines.splice(this.#lines.indexOf(line), 1);
  }

  /** Also forgets the lines of clients that the pool has forgotten. */
  #keep(account: PoolAccount): ClientLine<Item, PoolAccount> {
    for (const known of this.#kept.keys()) {
      if (this.#accounts.find(known.account) !== known) this.#kept.delete(known);
    }
    const line = new ClientLine<Item, PoolAccount>(account);
    this.#kept.set(account, line);
    return line;
  }
}

// A queue in which clients take turns by the time for which they have held connections, and the users of a client one after the other.
import type { PoolAccount, PoolAccounts } from './pool-accounts.ts';
import type { WaitLimit } from './wait-limit.ts';

/** Something that waits for a request. */
export interface Queued {
  /** Its account and user stay the same while it waits. */
  readonly waitLimit: WaitLimit;
}

/** The rules by which clients are served now, or wait. */
export interface TurnRules {
  mayTake(account: PoolAccount): boolean;
  /** Whether the client has less than its share: it comes before all that have more. */
  isBelowShare(account: PoolAccount): boolean;
}

/** The waiting requests of one user, in the order of arrival. */
type UserLine<Item> = { user: string | null; items: Item[] };

/** The waiting requests of one client. The user whose turn it is comes first. */
class ClientLine<Item extends Queued> {
  readonly account: PoolAccount;
  length = 0;
  /** None of them is empty, except that an empty line keeps one for its next user. */
  readonly #users: UserLine<Item>[] = [];

  constructor(account: PoolAccount) {
    this.account = account;
  }

  add(item: Item): void {
    const { user } = item.waitLimit;
    const [first] = this.#users;
    if (this.length === 0 && first !== undefined) first.user = user;
    const line = this.#of(user);
    if (line === undefined) this.#users.push({ user, items: [item] });
    else line.items.push(item);
    this.length += 1;
  }

  /** Removes the first request of the user whose turn it is, who is the last one afterwards. */
  take(): Item {
    const line = this.#users[0] as UserLine<Item>;
    const item = line.items.shift() as Item;
    this.length -= 1;
    if (this.length > 0 && this.#users.length > 1) {
      this.#users.shift();
      if (line.items.length > 0) this.#users.push(line);
    }
    return item;
  }

  has(item: Item): boolean {
    return this.#of(item.waitLimit.user)?.items.includes(item) === true;
  }

  /** Removes a request; returns whether it was there. */
  remove(item: Item): boolean {
    const line = this.#of(item.waitLimit.user);
    const at = line?.items.indexOf(item) ?? -1;
    if (line === undefined || at < 0) return false;
    line.items.splice(at, 1);
    this.length -= 1;
    if (line.items.length === 0 && this.#users.length > 1) {
      this.#users.splice(this.#users.indexOf(line), 1);
    }
    return true;
  }

  replace(item: Item, by: Item): boolean {
    const items = this.#of(item.waitLimit.user)?.items ?? [];
    const at = items.indexOf(item);
    if (at >= 0) items[at] = by;
    return at >= 0;
  }

  /** How many are served before a further request of that user, at most. */
  aheadOf(user: string | null): number {
    const own = this.#of(user)?.items.length ?? 0;
    return Math.min(this.length, (own + 1) * (this.#users.length + (own === 0 ? 1 : 0)) - 1);
  }

  /** The newest request of the user who has the most. Undefined: no user has more than that one. @param user undefined: any user's counts */
  newest(user: string | null | undefined): Item | undefined {
    let longest = user === undefined ? undefined : this.#of(user);
    const own = longest;
    for (const line of this.#users) {
      if (line.items.length > (longest?.items.length ?? 0)) longest = line;
    }
    return longest === own ? undefined : longest?.items.at(-1);
  }

  /** In the order of their turns, if none arrives. */
  *[Symbol.iterator](): Generator<Item> {
    for (let place = 0, left = this.length; left > 0; place += 1) {
      for (const { items } of this.#users) {
        const item = items[place];
        if (item === undefined) continue;
        left -= 1;
        yield item;
      }
    }
  }

  /** Removes all, in the order of arrival; only if they are of one user. Null: they are of several. */
  takeAll(): Item[] | null {
    const [line, another] = this.#users;
    if (line === undefined || another !== undefined) return null;
    const { items } = line;
    line.items = [];
    this.length = 0;
    return items;
  }

  #of(user: string | null): UserLine<Item> | undefined {
    // With one user, no search.
    const [first] = this.#users;
    return first?.user === user ? first : this.#users.find((line) => line.user === user);
  }
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
  readonly #lines: ClientLine<Item>[] = [];
  /** Those of all clients that have waited lately: a client that waits again needs no new one. */
  readonly #kept = new Map<PoolAccount, ClientLine<Item>>();

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

  /**
   * The newest request of the client with the longest queue for its share; within that client, of the user with the most requests.
   * Undefined: no queue is longer than that user's.
   */
  newestOfLongest(account: PoolAccount, user: string | null): Item | undefined {
    const own = this.#kept.get(account);
    let longest = own;
    for (const line of this.#lines) {
      if (longest === undefined || weightOf(line) > weightOf(longest)) longest = line;
    }
    return longest?.newest(longest === own ? user : undefined);
  }

  /** In no order that is promised between clients. */
  *[Symbol.iterator](): Generator<Item> {
    for (const line of this.#lines) yield* line;
  }

  /** The line of the client that is next. */
  #next(now: number): ClientLine<Item> | undefined {
    let next: ClientLine<Item> | undefined;
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

  #lineOf({ waitLimit }: Item): ClientLine<Item> | undefined {
    const account = this.#accounts.find(waitLimit.account);
    return account === undefined ? undefined : this.#kept.get(account);
  }

  #left(line: ClientLine<Item>, count: number): void {
    line.account.waiting -= count;
    this.length -= count;
    if (line.length === 0) this.#lines.splice(this.#lines.indexOf(line), 1);
  }

  /** Also forgets the lines of clients that the pool has forgotten. */
  #keep(account: PoolAccount): ClientLine<Item> {
    for (const known of this.#kept.keys()) {
      if (this.#accounts.find(known.account) !== known) this.#kept.delete(known);
    }
    const line = new ClientLine<Item>(account);
    this.#kept.set(account, line);
    return line;
  }
}

function weightOf({ length, account }: ClientLine<Queued>): number {
  return length / account.share;
}

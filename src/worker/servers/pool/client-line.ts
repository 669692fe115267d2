// The waiting requests of one client, whose users take turns.
import type { WaitLimit } from './wait-limit.ts';

/** Something that waits for a request. */
export interface Queued {
  /** Its account and user stay the same while it waits. */
  readonly waitLimit: WaitLimit;
}

/** The waiting requests of one user, in the order of arrival. */
type UserLine<Item> = { user: string | null; items: Item[] };

/** The waiting requests of one client. The user whose turn it is comes first. */
export class ClientLine<Item extends Queued, Owner> {
  readonly account: Owner;
  length = 0;
  /** None of them is empty, except that an empty line keeps one for its next user. */
  readonly #users: UserLine<Item>[] = [];

  constructor(account: Owner) {
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

  /**
   * The newest request of the user who has the most. Undefined: that is a newcomer, or there is none.
   * @param newcomer null: it is another client's
   */
  newest(
    newcomer: { readonly user: string | null; readonly more: number } | null,
  ): Item | undefined {
    let most = newcomer === null ? 1 : (this.#of(newcomer.user)?.items.length ?? 0) + newcomer.more;
    let newestSince = newcomer === null ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    let newest: Item | undefined;
    for (const { items } of this.#users) {
      const last = items.at(-1);
      if (last === undefined || items.length < most) continue;
      const { since } = last.waitLimit;
      if (items.length === most && since <= newestSince) continue;
      most = items.length;
      newestSince = since;
      newest = last;
    }
    return newest;
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

// Which request leaves a full queue: the newest one of the client with the longest queue for its share, wherever that waits.
import type { Account } from '../account.ts';
import type { ClientLine, Queued } from './client-line.ts';

/** A request that comes while the queue is full. `more`: 1 if it does not wait yet, and 0 if it does. */
export type Newcomer = {
  readonly account: Account;
  readonly user: string | null;
  readonly more: 0 | 1;
};

/** The request that leaves, and the weight of its client: its waiting requests, divided by its share. */
export type Excess<Item> = { readonly item: Item; readonly weight: number };

/** A part of the worker in which requests wait. */
export interface Waitlist {
  /** The request that leaves if one must. Null: that is the newcomer, or a request elsewhere. */
  findExcess(newcomer: Newcomer): Excess<Queued> | null;
  /** Takes the place of a request that `findExcess` has given. */
  reject(item: Queued): void;
}

/** Whether the first request leaves, and not the other one: its client has more, or it is newer. */
export function leavesBefore(one: Excess<Queued>, other: Excess<Queued>): boolean {
  if (one.weight !== other.weight) return one.weight > other.weight;
  return one.item.waitLimit.since > other.item.waitLimit.since;
}

/**
 * Among clients, and users, with as many requests as the newcomer's, the newcomer leaves: otherwise two could take each other's places for
 * ever. Among others the newest request does.
 * @param lines those of all clients that wait
 * @param own that of the newcomer's client; undefined: it has none
 * @param ownWeight with the newcomer
 */
export function findExcess<Item extends Queued, Owner>(
  lines: Iterable<ClientLine<Item, Owner>>,
  own: ClientLine<Item, Owner> | undefined,
  newcomer: Newcomer,
  weightOf: (line: ClientLine<Item, Owner>) => number,
  ownWeight: number,
): Excess<Item> | null {
  const ownItem = own?.newest(newcomer);
  let excess: Excess<Item> | null =
    ownItem === undefined ? null : { item: ownItem, weight: ownWeight };
  let isOwn = true;
  for (const line of lines) {
    const weight = weightOf(line);
    if (line === own || weight < (excess?.weight ?? ownWeight)) continue;
    if (isOwn && weight === ownWeight) continue;
    const item = line.newest(null);
    if (item === undefined) continue;
    const next = { item, weight };
    if (!isOwn && excess !== null && !leavesBefore(next, excess)) continue;
    excess = next;
    isOwn = false;
  }
  return excess;
}

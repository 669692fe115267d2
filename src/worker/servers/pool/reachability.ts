// Whether the database can be reached, as all that connect to it see it: one line when it goes, one when it is back.
// Must not know how connections are made, nor what for.
import { performance } from 'node:perf_hooks';
import {
  type ConnectFailure,
  describeConnectFailure,
} from '../../../shared/mysql/connect-failure.ts';
import type { Log } from '../../../shared/process/log.ts';
import { describeLoss } from './describe-loss.ts';

/** Who keeps connections open. */
export type Party = 'pool' | 'control';

/** Where the connections go, for the log. */
export type Place = { readonly address: string; readonly account: string };

type Losses = { count: number; inUse: number; readonly error: string };
type Outage = {
  readonly since: number;
  readonly told: Set<string>;
  attempts: number;
  lost: number;
};

/** Connections that go at one time are told in one line; those of a database that goes, in its own. */
const gatherMs = 1_000;
/** Reasons that one outage may be told with: a server on its way up gives several. */
const mostReasons = 8;

/** One worker's view. Its owner must close it. */
export class Reachability {
  readonly #log: Log;
  readonly #place: Place;
  readonly #wakes = new Map<Party, () => void>();
  readonly #down = new Set<Party>();
  #outage: Outage | null = null;
  #losses: Losses | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Log, place: Place) {
    this.#log = log;
    this.#place = place;
  }

  /** @param wake called when somebody else has reached the database: an attempt that is due later may be made now */
  join(party: Party, wake: () => void): void {
    this.#wakes.set(party, wake);
  }

  /** An attempt has failed. Returns why, in words. */
  failed(party: Party, error: unknown): ConnectFailure {
    const failure = describeConnectFailure(error);
    this.#down.add(party);
    this.#outage ??= { since: performance.now(), told: new Set(), attempts: 0, lost: 0 };
    this.#outage.attempts += 1;
    this.#log.debug?.('an attempt to connect failed', {
      by: party,
      attempt: this.#outage.attempts,
      ...(failure.errno === null ? {} : { errno: failure.errno }),
      reason: failure.reason,
    });
    this.#tellOutage(this.#outage, failure);
    return failure;
  }

  succeeded(party: Party): void {
    if (!this.#down.delete(party)) return;
    const outage = this.#outage;
    if (this.#down.size > 0 || outage === null) {
      this.reached();
      return;
    }
    this.#outage = null;
    this.#log.warn('the database is back', {
      ...this.#place,
      after_s: Math.round(performance.now() - outage.since) / 1000,
      attempts: outage.attempts,
      ...(outage.lost === 0 ? {} : { lost: outage.lost }),
    });
  }

  /** Somebody who is no party has reached the database, or has reason to believe that it can be. */
  reached(): void {
    for (const party of this.#down) this.#wakes.get(party)?.();
  }

  /** A connection is gone; without anything running on it that is no more than news. */
  lost(reason: Error, wasInUse: boolean): void {
    // While the pool can open none, what it loses belongs to what has been told.
    if (this.#outage !== null && this.#down.has('pool')) {
      this.#outage.lost += 1;
      return;
    }
    this.#losses ??= { count: 0, inUse: 0, error: describeLoss(reason) };
    this.#losses.count += 1;
    if (wasInUse) this.#losses.inUse += 1;
    this.#timer ??= setTimeout(() => this.#tellLosses(), gatherMs);
  }

  close(): void {
    this.#tellLosses();
  }

  #tellOutage(outage: Outage, { errno, reason }: ConnectFailure): void {
    if (outage.told.has(reason) || outage.told.size === mostReasons) return;
    outage.told.add(reason);
    const losses = this.#takeLosses();
    this.#log.warn('cannot connect to the database', {
      ...this.#place,
      ...(errno === null ? {} : { errno }),
      reason,
      ...(losses === null ? {} : { lost: losses.count, in_use: losses.inUse }),
    });
  }

  #tellLosses(): void {
    const losses = this.#takeLosses();
    if (losses === null) return;
    const { count, inUse, error } = losses;
    const tell = inUse > 0 ? this.#log.warn : this.#log.info;
    if (count === 1) tell('a connection to the database was lost', { error });
    else tell('connections to the database were lost', { count, in_use: inUse, error });
  }

  #takeLosses(): Losses | null {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const losses = this.#losses;
    this.#losses = null;
    return losses;
  }
}

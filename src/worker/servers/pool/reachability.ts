// Whether a server can be reached, as the pool and the control connection see it: one log line when it goes, one when it is back.
import { performance } from 'node:perf_hooks';
import { RefusedError } from '../../../shared/mysql/commands.ts';
import {
  type ConnectFailure,
  describeConnectFailure,
  ServerFault,
} from '../../../shared/mysql/connect-failure.ts';
import { type Log, whereThrown } from '../../../shared/process/log.ts';

/** The parts of a worker that keep connections open. */
export type Party = 'pool' | 'control';

/** A party that opens connections, and tries again after a failure. */
export interface Reconnecting {
  /** The database has been reached by others, or probably can be: an attempt that is due later may be made now. */
  wake(): void;
  /** The server answers again after an outage: attempts in progress may never end by themselves, and are replaced. */
  renew(): void;
}

/** The destination of the connections, for the log. */
export type Place = { readonly address: string; readonly account: string };

type Losses = { count: number; inUse: number; readonly error: string };
type Outage = {
  readonly since: number;
  readonly reported: Set<string>;
  attempts: number;
  lost: number;
};

/** Connections that are lost together share one log line. In an outage they are part of its line. */
const gatherMs = 1_000;
/** At most this many reasons of one outage are logged: a server that starts gives several. */
const maxReasons = 8;

/** One worker's view. Its owner must close it. */
export class Reachability {
  /** The server's number for why the latest attempt failed; null: no attempt has failed since, or the server gave no number. */
  errno: number | null = null;
  readonly #log: Log;
  readonly #place: Place;
  readonly #parties = new Map<Party, Reconnecting>();
  readonly #down = new Set<Party>();
  #outage: Outage | null = null;
  #losses: Losses | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Log, place: Place) {
    this.#log = log;
    this.#place = place;
  }

  join(name: Party, party: Reconnecting): void {
    this.#parties.set(name, party);
  }

  /** An attempt has failed. Returns why, in words. */
  failed(party: Party, error: unknown): ConnectFailure {
    const failure = describeConnectFailure(error);
    this.errno = failure.errno;
    this.#down.add(party);
    this.#outage ??= { since: performance.now(), reported: new Set(), attempts: 0, lost: 0 };
    this.#outage.attempts += 1;
    this.#log.debug?.('an attempt to connect failed', {
      by: party,
      attempt: this.#outage.attempts,
      ...(failure.errno === null ? {} : { errno: failure.errno }),
      reason: failure.reason,
    });
    this.#logOutage(this.#outage, failure);
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
    this.errno = null;
    this.#log.warn('the database is back', {
      ...this.#place,
      after_s: Math.round(performance.now() - outage.since) / 1000,
      attempts: outage.attempts,
      ...(outage.lost === 0 ? {} : { lost: outage.lost }),
    });
  }

  /** The database has been reached, or probably can be: the parties that could not connect try now. */
  reached(): void {
    for (const name of this.#down) this.#parties.get(name)?.wake();
  }

  /** The server can be reached again after an outage. Attempts from before may still wait for an answer that never comes. */
  returned(): void {
    for (const party of this.#parties.values()) party.renew();
  }

  /** A connection is lost. That is a warning only if it was in use. */
  lost(reason: Error, wasInUse: boolean): void {
    // While the pool can open no connections, its losses belong to the outage, which has been logged.
    if (this.#outage !== null && this.#down.has('pool')) {
      this.#outage.lost += 1;
      return;
    }
    this.#losses ??= { count: 0, inUse: 0, error: describeLoss(reason) };
    this.#losses.count += 1;
    if (wasInUse) this.#losses.inUse += 1;
    this.#timer ??= setTimeout(() => this.#logLosses(), gatherMs);
  }

  close(): void {
    this.#logLosses();
  }

  #logOutage(outage: Outage, { errno, reason, hint }: ConnectFailure): void {
    if (outage.reported.has(reason) || outage.reported.size === maxReasons) return;
    outage.reported.add(reason);
    const losses = this.#takeLosses();
    this.#log.warn('cannot connect to the database', {
      ...this.#place,
      ...(errno === null ? {} : { errno }),
      reason,
      ...(hint === null ? {} : { hint }),
      ...(losses === null ? {} : { lost: losses.count, in_use: losses.inUse }),
    });
  }

  #logLosses(): void {
    const losses = this.#takeLosses();
    if (losses === null) return;
    const { count, inUse, error } = losses;
    const write = inUse > 0 ? this.#log.warn : this.#log.info;
    if (count === 1) write('a connection to the database was lost', { error });
    else write('connections to the database were lost', { count, in_use: inUse, error });
  }

  #takeLosses(): Losses | null {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const losses = this.#losses;
    this.#losses = null;
    return losses;
  }
}

/**
 * Why a connection was lost, for the log: never SQL, a value or a server's own sentence. The gateway's own errors are given in words, a
 * system's error by its code, an exception by its place in the code, a server's refusal by its number.
 */
export function describeLoss(reason: unknown): string {
  if (reason instanceof RefusedError) return `errno ${reason.errno}`;
  if (!(reason instanceof Error)) return String(reason);
  const isForeign = 'code' in reason && !(reason instanceof ServerFault);
  const text = isForeign ? String(reason.code) : reason.message;
  const { cause } = reason;
  if (cause === undefined) return text;
  return `${text} (${cause instanceof RefusedError ? describeLoss(cause) : whereThrown(cause)})`;
}

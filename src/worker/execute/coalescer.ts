// Identical reads that wait at the same time, and the one execution that each of them gets.
// Must not know HTTP, nor what makes two reads identical: a key says it.
import { performance } from 'node:perf_hooks';
import type { Anteroom } from '../backend/queue.ts';
import { type CreateRun, Flight, type FlightKeeper, type Member } from './coalesced-run.ts';
import type { RunEnd, StopReason } from './outcome.ts';
import type { RunOwner, StatementRun } from './statement-run.ts';

/** A worker's flights. One that has begun is not joined: no answer is older than the request that gets it. */
export class Flights implements FlightKeeper {
  /** Requests that were answered by the execution of another one. */
  coalesced = 0;
  readonly #open = new Map<string, Flight>();
  readonly #anteroom: Anteroom;

  constructor(anteroom: Anteroom) {
    this.#anteroom = anteroom;
  }

  /**
   * Creates a run that its owner must start.
   * @param key the same for reads that have the same reply
   */
  create(key: string, owner: RunOwner, createRun: CreateRun): StatementRun {
    return new SharedRun(this, key, owner, createRun);
  }

  /** Has a request join the flight that is open, or lead one; null: the queue is full, it runs by itself. */
  board(key: string, member: Member, createRun: CreateRun): Flight | null {
    const open = this.#open.get(key);
    if (open === undefined) return new Flight(key, member, this, createRun);
    if (!this.#anteroom.admit()) return null;
    open.join(member);
    return open;
  }

  opened(flight: Flight): void {
    if (!this.#open.has(flight.key)) this.#open.set(flight.key, flight);
  }

  closed(flight: Flight): void {
    if (this.#open.get(flight.key) === flight) this.#open.delete(flight.key);
  }

  left(count: number): void {
    this.#anteroom.leave(count);
  }
}

/** One request's share in a flight; its own run once the flight had no answer for it. */
class SharedRun implements StatementRun, Member {
  readonly owner: RunOwner;
  readonly #flights: Flights;
  readonly #key: string;
  readonly #createRun: CreateRun;
  readonly #askedAt = performance.now();
  /** 0 while there is no answer. */
  #answeredAt = 0;
  #flight: Flight | null = null;
  #own: StatementRun | null = null;
  /** When that run was created. */
  #movedAt = 0;

  constructor(flights: Flights, key: string, owner: RunOwner, createRun: CreateRun) {
    this.#flights = flights;
    this.#key = key;
    this.owner = owner;
    this.#createRun = createRun;
  }

  start(): void {
    this.#flight = this.#flights.board(this.#key, this, this.#createRun);
    if (this.#flight === null) this.#startOwn();
    else if (this.#flight.isLedBy(this)) this.#flight.start();
  }

  /** What was sent in another request's name does not count. */
  get isSent(): boolean {
    return this.#ledRun?.isSent ?? false;
  }

  /** All but the execution that answers it. */
  get queueMs(): number {
    if (this.#own !== null) return this.#movedAt - this.#askedAt + this.#own.queueMs;
    const until = this.#answeredAt === 0 ? performance.now() : this.#answeredAt;
    return Math.max(0, until - this.#askedAt - this.databaseMs);
  }

  get databaseMs(): number {
    return Math.min(this.#run?.databaseMs ?? 0, performance.now() - this.#askedAt);
  }

  pause(): void {
    this.#ledRun?.pause();
  }

  resume(): void {
    this.#ledRun?.resume();
  }

  abandonResults(): void {
    this.#ledRun?.abandonResults();
  }

  stop(reason: StopReason): void {
    if (this.#own !== null) this.#own.stop(reason);
    else this.#flight?.leave(this, reason);
  }

  answered(end: RunEnd): void {
    this.#answeredAt = performance.now();
    this.#flights.coalesced += 1;
    this.owner.runEnded(end);
  }

  letDown(): void {
    this.#startOwn();
  }

  withdrawn(reason: StopReason): void {
    this.#flight = null;
    this.owner.runEnded({ kind: 'not executed', reason });
  }

  /** The execution that answers this request, whoever leads it. */
  get #run(): StatementRun | null {
    return this.#own ?? this.#flight?.run ?? null;
  }

  /** The same, where it is this request's to say what becomes of it. */
  get #ledRun(): StatementRun | null {
    return this.#own !== null || this.#flight?.isLedBy(this) ? this.#run : null;
  }

  #startOwn(): void {
    this.#flight = null;
    this.#movedAt = performance.now();
    this.#own = this.#createRun(this.owner);
    this.#own.start();
  }
}

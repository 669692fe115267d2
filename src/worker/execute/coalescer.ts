// Identical reads that wait at the same time, and the one execution that each of them gets.
// Must not know HTTP, nor what makes two reads identical: a key says it.
import { performance } from 'node:perf_hooks';
import type { Admission } from '../backend/queue.ts';
import {
  CoalescedRun,
  type CoalescedRunEvents,
  type CreateRun,
  type Participant,
} from './coalesced-run.ts';
import type { RunEnd, StopReason } from './outcome.ts';
import type { RunEvents, StatementRun } from './statement-run.ts';

/** A worker's coalesced runs. One that has begun is not joined: no answer is older than the request that gets it. */
export class Coalescer implements CoalescedRunEvents {
  /** Requests that were answered by the execution of another one. */
  coalesced = 0;
  readonly #open = new Map<string, CoalescedRun>();
  readonly #admission: Admission;

  constructor(admission: Admission) {
    this.#admission = admission;
  }

  /**
   * Creates a run that its owner must start.
   * @param key the same for reads that have the same reply
   */
  create(key: string, events: RunEvents, createRun: CreateRun): StatementRun {
    return new SharedRun(this, key, events, createRun);
  }

  /** Has a request join the run that is open, or lead one; null: the queue is full, it runs by itself. */
  enter(key: string, participant: Participant, createRun: CreateRun): CoalescedRun | null {
    const open = this.#open.get(key);
    if (open === undefined) return new CoalescedRun(key, participant, this, createRun);
    if (!this.#admission.admit()) return null;
    open.join(participant);
    return open;
  }

  opened(shared: CoalescedRun): void {
    if (!this.#open.has(shared.key)) this.#open.set(shared.key, shared);
  }

  closed(shared: CoalescedRun): void {
    if (this.#open.get(shared.key) === shared) this.#open.delete(shared.key);
  }

  left(count: number): void {
    this.#admission.leave(count);
  }
}

/** One request's share in a coalesced run; its own run once that had no answer for it. */
class SharedRun implements StatementRun, Participant {
  readonly events: RunEvents;
  readonly #coalescer: Coalescer;
  readonly #key: string;
  readonly #createRun: CreateRun;
  readonly #askedAt = performance.now();
  /** 0 while there is no answer. */
  #answeredAt = 0;
  #shared: CoalescedRun | null = null;
  #own: StatementRun | null = null;
  /** When that run was created. */
  #movedAt = 0;

  constructor(coalescer: Coalescer, key: string, events: RunEvents, createRun: CreateRun) {
    this.#coalescer = coalescer;
    this.#key = key;
    this.events = events;
    this.#createRun = createRun;
  }

  start(): void {
    this.#shared = this.#coalescer.enter(this.#key, this, this.#createRun);
    if (this.#shared === null) this.#startOwn();
    else if (this.#shared.isLedBy(this)) this.#shared.start();
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
    else this.#shared?.leave(this, reason);
  }

  answered(end: RunEnd): void {
    this.#answeredAt = performance.now();
    this.#coalescer.coalesced += 1;
    this.events.runEnded(end);
  }

  fallBack(): void {
    this.#startOwn();
  }

  withdrawn(reason: StopReason): void {
    this.#shared = null;
    this.events.runEnded({ kind: 'not executed', reason });
  }

  /** The execution that answers this request, whoever leads it. */
  get #run(): StatementRun | null {
    return this.#own ?? this.#shared?.run ?? null;
  }

  /** The same, where it is this request's to say what becomes of it. */
  get #ledRun(): StatementRun | null {
    return this.#own !== null || this.#shared?.isLedBy(this) ? this.#run : null;
  }

  #startOwn(): void {
    this.#shared = null;
    this.#movedAt = performance.now();
    this.#own = this.#createRun(this.events);
    this.#own.start();
  }
}

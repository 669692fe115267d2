// How long a request's statements have waited, also for a connection to be opened, and how long MySQL has had them.
// Must not know for what they wait.
import { performance } from 'node:perf_hooks';
import type { WaitLimit } from '../servers/pool/queue.ts';

/** What goes on: they wait for MySQL, MySQL has them, or neither. */
export type Activity = 'waiting' | 'working' | 'over';

/** The times of one request: whoever creates them hands them to its run, which alone changes them. In ms. */
export class RunTimes {
  readonly #longestWaitMs: number;
  #activity: Activity = 'over';
  #since = 0;
  #waitedMs = 0;
  #workedMs = 0;
  #connectingMs = 0;
  /** Of what MySQL had, up to its first answer; negative: none has come. */
  #firstAnswerMs = -1;

  /** @param longestWaitMs how long the request may wait behind others; `max_wait` is a limit beside it */
  constructor(longestWaitMs = Number.POSITIVE_INFINITY) {
    this.#longestWaitMs = longestWaitMs;
  }

  /** How long the request may wait behind others. @param since when it began to wait (performance.now) */
  waitLimit(since: number): WaitLimit {
    return { since, longestMs: this.#longestWaitMs };
  }

  /** What goes on now. */
  get activity(): Activity {
    return this.#activity;
  }

  /** What has been waited so far: for a connection, or for the answer to an identical request. */
  get waitedMs(): number {
    return this.#activity === 'waiting' ? this.#waitedMs + this.#sinceMs : this.#waitedMs;
  }

  /** How long MySQL has had the statements so far, all runs of a read together. */
  get workedMs(): number {
    return this.#activity === 'working' ? this.#workedMs + this.#sinceMs : this.#workedMs;
  }

  /** What part of the wait was for a connection to be opened. */
  get connectingMs(): number {
    return this.#connectingMs;
  }

  /** How long MySQL has had the statements up to their first row or answer; where none was noted, until now. */
  get firstAnswerMs(): number {
    return this.#firstAnswerMs < 0 ? this.workedMs : this.#firstAnswerMs;
  }

  /** The wait ends with a connection whose opening began at `since` (performance.now); null: it was there before. */
  connected(since: number | null): void {
    if (since === null || this.#activity !== 'waiting') return;
    this.#connectingMs += performance.now() - Math.max(since, this.#since);
  }

  /** MySQL begins to answer. Only the first time counts, up to the next wait. */
  answerBegins(): void {
    if (this.#firstAnswerMs < 0) this.#firstAnswerMs = this.workedMs;
  }

  /** @param now performance.now(), where it is known already */
  enter(activity: Activity, now?: number): void {
    if (activity === this.#activity) return;
    const at = now ?? performance.now();
    if (this.#activity === 'waiting') this.#waitedMs += at - this.#since;
    else if (this.#activity === 'working') this.#workedMs += at - this.#since;
    this.#activity = activity;
    this.#since = at;
    if (activity === 'waiting') this.#firstAnswerMs = -1;
  }

  /** The wait is over by what MySQL did for an identical request in the last so many ms. */
  shareWork(ms: number): void {
    this.enter('over');
    const shared = Math.min(ms, this.#waitedMs);
    this.#waitedMs -= shared;
    this.#workedMs += shared;
  }

  get #sinceMs(): number {
    return performance.now() - this.#since;
  }
}

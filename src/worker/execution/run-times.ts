// Measures how long a request's statements have waited, how much of that for a new connection, and how long MySQL has had them. Its account
// is that of the client whose time it is.
import { performance } from 'node:perf_hooks';
import { defaultClient } from '../../shared/clients/client.ts';
import { Account } from '../servers/account.ts';
import type { RequestOwner, WaitLimit } from '../servers/pool/wait-limit.ts';

/** The statements wait for MySQL, MySQL has them, or neither. */
export type Activity = 'waiting' | 'working' | 'over';

/** The times of one request, in ms. Only its run changes them. */
export class RunTimes implements RequestOwner {
  readonly account: Account;
  readonly user: string | null;
  readonly #longestWaitMs: number;
  #activity: Activity = 'over';
  #since = 0;
  #waitedMs = 0;
  #workedMs = 0;
  #connectingMs = 0;
  /** The part of `#workedMs` up to the first answer; negative: none has come. */
  #firstAnswerMs = -1;

  /**
   * @param longestWaitMs how long the request may wait behind others; `max_wait` is a limit beside it
   * @param account missing: it is of no worker
   * @param user the user within the client
   */
  constructor(
    longestWaitMs = Number.POSITIVE_INFINITY,
    account = new Account(defaultClient),
    user: string | null = null,
  ) {
    this.account = account;
    this.user = user;
    this.#longestWaitMs = longestWaitMs;
  }

  /** How long the request may wait behind others. @param since when it began to wait (performance.now) */
  waitLimit(since: number): WaitLimit {
    return { account: this.account, user: this.user, since, longestMs: this.#longestWaitMs };
  }

  get activity(): Activity {
    return this.#activity;
  }

  /** The wait so far: for a connection, or for the answer to an identical request. */
  get waitedMs(): number {
    return this.#activity === 'waiting' ? this.#waitedMs + this.#sinceMs : this.#waitedMs;
  }

  /** How long MySQL has had the statements so far, all runs of a read together. */
  get workedMs(): number {
    return this.#activity === 'working' ? this.#workedMs + this.#sinceMs : this.#workedMs;
  }

  /** The part of the wait in which a connection was opened. */
  get connectingMs(): number {
    return this.#connectingMs;
  }

  /** How long MySQL has had the statements up to their first row or answer; if none was noted, until now. */
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

  /**
   * @param now performance.now(), if the caller has it already. It may be older than the last change: time never counts as negative, for
   *   the sums that Prometheus reads must not go backwards
   */
  enter(activity: Activity, now?: number): void {
    if (activity === this.#activity) return;
    const at = Math.max(now ?? performance.now(), this.#since);
    if (this.#activity === 'waiting') this.#waitedMs += at - this.#since;
    else if (this.#activity === 'working') this.#workedMs += at - this.#since;
    this.#activity = activity;
    this.#since = at;
    if (activity === 'waiting') this.#firstAnswerMs = -1;
  }

  /** Ends the wait with the answer to an identical request. @param ms how long MySQL has worked on that answer */
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

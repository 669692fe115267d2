// How long a request's statements have waited, and how long MySQL has had them.
// Must not know for what they wait.
import { performance } from 'node:perf_hooks';

/** What goes on: they wait for MySQL, MySQL has them, or neither. */
export type Activity = 'waiting' | 'working' | 'over';

/** The times of one request: whoever creates them hands them to its run, which alone changes them. In ms. */
export class RunTimes {
  #activity: Activity = 'over';
  #since = 0;
  #waitedMs = 0;
  #workedMs = 0;

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

  /** @param now performance.now(), where it is known already */
  enter(activity: Activity, now?: number): void {
    if (activity === this.#activity) return;
    const at = now ?? performance.now();
    if (this.#activity === 'waiting') this.#waitedMs += at - this.#since;
    else if (this.#activity === 'working') this.#workedMs += at - this.#since;
    this.#activity = activity;
    this.#since = at;
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

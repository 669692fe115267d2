// The latest requests that went wrong, of all workers.
// Must not know who tells of them.
import { mostRecentErrors, type RecentError } from '../../shared/observe/recent-errors.ts';

type WorkersError = RecentError & { readonly worker: number };

/** Those of one instance. */
export class RecentErrors {
  #all: readonly WorkersError[] = [];

  /** Adds those that a worker reports, the oldest first. Of those that share a millisecond the one reported last is the latest. */
  add(worker: number, errors: readonly RecentError[]): void {
    if (errors.length === 0) return;
    const added = errors.map((error) => ({ ...error, worker })).reverse();
    this.#all = [...added, ...this.#all]
      .sort((left, right) => (left.at < right.at ? 1 : left.at > right.at ? -1 : 0))
      .slice(0, mostRecentErrors);
  }

  /** The latest first. */
  get latest(): readonly WorkersError[] {
    return this.#all;
  }
}

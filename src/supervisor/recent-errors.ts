// The latest requests that went wrong, of all workers.
// Must not know who tells of them.
import { mostRecentErrors, type RecentError } from '../shared/process/recent-errors.ts';

type WorkersError = RecentError & { readonly worker: number };

/** Those of one instance. */
export class RecentErrors {
  #all: readonly WorkersError[] = [];

  /** A worker tells of more of them. */
  add(worker: number, errors: readonly RecentError[]): void {
    if (errors.length === 0) return;
    const all = [...this.#all, ...errors.map((error) => ({ ...error, worker }))];
    this.#all = all
      .sort((left, right) => (left.at < right.at ? 1 : left.at > right.at ? -1 : 0))
      .slice(0, mostRecentErrors);
  }

  /** The latest first. */
  get latest(): readonly WorkersError[] {
    return this.#all;
  }
}

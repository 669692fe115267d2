// Identical reads that wait at the same time: whom the others follow, for the one execution that each of them gets.
// Must not know what they are, nor what makes two of them identical: a key says it.

/** A worker's executions that have not begun. One that has is not joined: no answer is older than the request that gets it. */
export class Coalescer<Run> {
  /** Requests that were answered by the execution of another one. */
  coalesced = 0;
  readonly #leaders = new Map<string, Run>();

  /** Whose execution may be joined. */
  leaderOf(key: string): Run | undefined {
    return this.#leaders.get(key);
  }

  /** From here on others may join, unless they have somebody to follow. */
  open(key: string, leader: Run): void {
    if (!this.#leaders.has(key)) this.#leaders.set(key, leader);
  }

  /** From here on nobody may join this one. */
  close(key: string, leader: Run): void {
    if (this.#leaders.get(key) === leader) this.#leaders.delete(key);
  }
}

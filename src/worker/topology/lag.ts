// How far replicas are behind: the age of the first of the primary's positions that one of them does not have.
// Pure; time comes from outside. Needs no clock of a server's, no grant, and no Seconds_Behind_Master, which is 0 while a primary is frozen.
import { hasReached, type Position } from '../../shared/topology/position.ts';

type Sample = { readonly at: number; readonly position: Position };

/** So many are remembered; of more, each two of the older ones become one: a great lag is told too great, never too small. */
const mostSamples = 512;

/** The positions that one primary had, with the times at which it was asked. */
export class LagTracker {
  #samples: Sample[] = [];

  /** Another primary: what the one before had is of no use. */
  clear(): void {
    this.#samples = [];
  }

  /** @param at when the primary was asked, in ms of any clock that does not jump */
  note(at: number, position: Position): void {
    const last = this.#samples.at(-1);
    if (last !== undefined && hasReached(last.position, position) === true) return;
    this.#samples.push({ at, position });
    if (this.#samples.length > mostSamples) {
      const young = this.#samples.splice(mostSamples / 2);
      this.#samples = [...pairUp(this.#samples), ...young];
    }
  }

  /** The lag in ms of a replica with this position; null: it cannot be told, as nothing is known to compare it with. */
  lagOf(replica: Position, now: number): number | null {
    if (this.#samples.length === 0) return null;
    // They grow: the first that is missing is found by halving.
    let [low, high] = [0, this.#samples.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const reached = hasReached(replica, (this.#samples[middle] as Sample).position);
      if (reached === null) return null;
      if (reached) low = middle + 1;
      else high = middle;
    }
    const missing = this.#samples[low];
    return missing === undefined ? 0 : Math.max(0, now - missing.at);
  }
}

/** Whoever lacks the later position may lack the earlier one: it is as old as that. */
function pairUp(samples: readonly Sample[]): Sample[] {
  return samples.flatMap(({ at }, index) =>
    index % 2 === 1
      ? []
      : [{ at, position: (samples[index + 1] ?? samples[index])?.position as Position }],
  );
}

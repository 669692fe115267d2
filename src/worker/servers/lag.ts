// How far a replica is behind: the age of the primary's first position that it does not have. Pure; time comes from outside. This needs no
// server's clock, no grant, and no Seconds_Behind_Master, which is 0 while a primary is frozen.
import { hasReached, type Position } from '../../shared/servers/position.ts';

/** `until`: if several samples were merged, the time of the last one. */
type Sample = { readonly at: number; readonly until: number; readonly position: Position };

/** If there are more, samples that are close together for their age are merged. */
const maxSamples = 512;
/** A long lag is overstated by at most this part of it, and never understated. */
const precision = 1 / 16;

/** The positions of one primary, with the times at which it was probed. */
export class LagTracker {
  #samples: Sample[] = [];

  /** Forgets the positions, because there is another primary. */
  clear(): void {
    this.#samples = [];
  }

  /** @param at when the primary was probed, in ms of any clock that does not jump */
  note(at: number, position: Position): void {
    const last = this.#samples.at(-1);
    if (last !== undefined && hasReached(last.position, position) === true) return;
    this.#samples.push({ at, until: at, position });
    if (this.#samples.length > maxSamples) this.#samples = thinOut(this.#samples, at);
  }

  /** The lag in ms of a replica with this position; null: there is nothing to compare it with. */
  lagOf(replica: Position, now: number): number | null {
    if (this.#samples.length === 0) return null;
    // Positions grow, so a binary search finds the first one that is missing.
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

/** Merged samples have the earliest time, because a replica that lacks the latest position may lack the earliest one. */
function thinOut(samples: readonly Sample[], now: number): Sample[] {
  const kept: Sample[] = [];
  for (const sample of samples) {
    const before = kept.at(-1);
    if (before !== undefined && sample.until - before.at <= (now - sample.until) * precision) {
      kept[kept.length - 1] = { ...sample, at: before.at };
    } else {
      kept.push(sample);
    }
  }
  return kept;
}

// How far replicas are behind: the age of the first of the primary's positions that one of them does not have.
// Pure; time comes from outside. Needs no clock of a server's, no grant, and no Seconds_Behind_Master, which is 0 while a primary is frozen.
import { hasReached, type Position } from '../../shared/servers/position.ts';

/** `until`: where several have become one, when the last of them was asked for. */
type Sample = { readonly at: number; readonly until: number; readonly position: Position };

/** When there are more, those that are close beside each other for their age become one. */
const mostSamples = 512;
/** A great lag is told too great by this part of it at most, and never too small. */
const precision = 1 / 16;

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
    this.#samples.push({ at, until: at, position });
    if (this.#samples.length > mostSamples) this.#samples = thinOut(this.#samples, at);
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

/** Of those that become one the earliest time counts: whoever lacks the latest position may lack the earliest one. */
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

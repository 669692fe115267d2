// Choices that look random and are the same for the same seed. Neighbouring seeds have nothing in common.

/** A source of choices. */
export type Draw = {
  /** A whole number from 0 to `limit`, `limit` excluded. */
  readonly below: (limit: number) => number;
  /** True once in this many times. */
  readonly chance: (oneIn: number) => boolean;
  readonly pick: <One>(all: readonly One[]) => One;
  readonly shuffle: (all: unknown[]) => void;
};

/** Creates a source: mulberry32, whose first number already depends on every bit of the seed. */
export function createDraw(seed: number): Draw {
  let state = Math.imul(seed, 0x9e3779b1);
  const below = (limit: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
  return {
    below,
    chance: (oneIn) => below(oneIn) === 0,
    pick: <One>(all: readonly One[]) => all[below(all.length)] as One,
    shuffle: (all) => {
      for (let last = all.length - 1; last > 0; last -= 1) {
        const other = below(last + 1);
        [all[last], all[other]] = [all[other], all[last]];
      }
    },
  };
}

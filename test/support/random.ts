// Numbers that look random and are the same in each run with the same seed.

/** Creates a source of numbers from 0 to 1, 1 excluded. The seed is a whole number. Numerical Recipes' generator: not for secrets. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** One of several, each as likely as the other. */
export function pick<One>(random: () => number, all: readonly One[]): One {
  const one = all[Math.floor(random() * all.length)];
  if (one === undefined) throw new Error('there is nothing to pick from');
  return one;
}

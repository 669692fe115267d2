// The name that a misspelt one probably means. Pure.

/** Longer names are compared with none: the time of a comparison grows with the length. */
const maxComparedLength = 64;

/** The nearest of the known names, in any case of letters; null: none is near. A third of the longer name may differ. */
export function findNearest(name: string, known: readonly string[]): string | null {
  if (name.length > maxComparedLength) return null;
  const asked = name.toLowerCase();
  let best: string | null = null;
  let least = Number.POSITIVE_INFINITY;
  for (const one of known) {
    const distance = editDistance(asked, one.toLowerCase());
    const mayDiffer = Math.floor(Math.max(asked.length, one.length) / 3);
    if (distance > mayDiffer || distance >= least) continue;
    best = one;
    least = distance;
  }
  return best;
}

/** Counts the characters to insert, remove or replace (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const replaced = (row[j - 1] as number) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[other.length] as number;
}

// The common parts of judges of histories: a broken promise, and ids that no client requested.

/** Something that breaks a promise. */
export type Breach = { readonly promise: string; readonly example: string };

/** The ids that are there and that no client requested, as text. */
export function findStrangers(
  asked: ReadonlySet<number>,
  ...there: readonly Iterable<number>[]
): string[] {
  const strangers = there.flatMap((ids) => [...ids].filter((id) => !asked.has(id)));
  return strangers.map((id) => `${id}: never asked for`);
}

/** The number of each text. */
export function countAlike(all: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}

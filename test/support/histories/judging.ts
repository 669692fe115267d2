// What judges of histories have in common: a broken promise, and ids that no client asked for.

/** Something that breaks a promise. */
export type Breach = { readonly promise: string; readonly example: string };

/** The ids that are there and were never asked for, in words. */
export function findStrangers(
  asked: ReadonlySet<number>,
  ...there: readonly Iterable<number>[]
): string[] {
  const strangers = there.flatMap((ids) => [...ids].filter((id) => !asked.has(id)));
  return strangers.map((id) => `${id}: never asked for`);
}

/** How often each thing is there. */
export function countAlike(all: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}

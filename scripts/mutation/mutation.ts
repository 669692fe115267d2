// One small fault of the gateway, on purpose, and the tests that must notice it.

/** A fault. */
export type Mutation = {
  /** Short, in small letters. Words of the command line choose by it. */
  readonly name: string;
  /** The promise that the fault breaks. */
  readonly promise: string;
  /** The source, from the root of the repository. */
  readonly file: string;
  /** The text that changes. It occurs exactly once in the source. */
  readonly before: string;
  readonly after: string;
  /** Test files, from the root of the repository, at least one of which must fail. */
  readonly tests: readonly string[];
};

/** The source with the fault in it; null if the text does not occur, or occurs more than once. */
export function mutate(source: string, { before, after }: Mutation): string | null {
  const [head, tail, further] = source.split(before);
  return head === undefined || tail === undefined || further !== undefined
    ? null
    : `${head}${after}${tail}`;
}

/** The mutations whose name or file contains one of the words; all of them if there are no words. */
export function select(
  mutations: readonly Mutation[],
  words: readonly string[],
): readonly Mutation[] {
  if (words.length === 0) return mutations;
  return mutations.filter(({ name, file }) =>
    words.some((word) => name.includes(word) || file.includes(word)),
  );
}

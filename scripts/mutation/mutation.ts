// One small fault of the gateway, on purpose, and the tests that must notice it.

/** A fault. */
export type Mutation = {
  /** Short, of small letters; words of the command line choose by it. */
  readonly name: string;
  /** What the gateway promises and does not keep any more. */
  readonly promise: string;
  /** The source, from the root of the repository. */
  readonly file: string;
  /** The text that changes: it stands in the source exactly once. */
  readonly before: string;
  readonly after: string;
  /** Test files, from the root of the repository, at least one of which must fail. */
  readonly tests: readonly string[];
};

/** The source with the fault in it; null: the text is not there, or more than once. */
export function mutate(source: string, { before, after }: Mutation): string | null {
  const [head, tail, further] = source.split(before);
  return head === undefined || tail === undefined || further !== undefined
    ? null
    : `${head}${after}${tail}`;
}

/** Those whose name or file contains one of the words; all without words. */
export function select(
  mutations: readonly Mutation[],
  words: readonly string[],
): readonly Mutation[] {
  if (words.length === 0) return mutations;
  return mutations.filter(({ name, file }) =>
    words.some((word) => name.includes(word) || file.includes(word)),
  );
}

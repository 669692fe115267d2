// The fenced blocks of a page, for tests that run them as they stand.

/** A fenced block. `mark` is the word after its language, `heading` that of its section (##). */
export type Block = {
  readonly language: string;
  readonly mark: string;
  readonly text: string;
  readonly heading: string;
};

/** All blocks of a page in Markdown, in its order. */
export function findBlocks(page: string): readonly Block[] {
  const found = page.matchAll(/^```(\w+) ?(\w*)\n([\s\S]*?)^```$/gm);
  return [...found].map(({ 1: language = '', 2: mark = '', 3: text = '', index }) => {
    const heading =
      page
        .slice(0, index)
        .match(/^## .*$/gm)
        ?.at(-1) ?? '';
    return { language, mark, text, heading: heading.slice(3) };
  });
}

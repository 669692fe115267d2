// The examples of docs/guides/drivers.md that need a generated client, and what they print.
import { readFileSync } from 'node:fs';
import { findBlocks } from '../../test/support/pages/page-blocks.ts';

/** The page's schema and table, and its programs in their order. */
export type PageExamples = {
  readonly schema: string;
  readonly table: string;
  readonly programs: readonly { readonly text: string; readonly printed: unknown }[];
};

/** The address of the gateway on the page. */
export const pageAddress = '127.0.0.1:9090';
export const pageToken = 'a-long-random-text';

/** Reads the page. Throws if it has no schema, no table, or a program without its output. */
export function readPageExamples(): PageExamples {
  const blocks = findBlocks(readFileSync('docs/guides/drivers.md', 'utf8'));
  const textOf = (language: string) => {
    const found = blocks.find((block) => block.language === language);
    if (found === undefined) throw new Error(`docs/guides/drivers.md has no block of ${language}`);
    return found.text;
  };
  const programs = blocks.flatMap(({ mark, text }, at) =>
    mark === 'prisma' ? [{ text, printed: JSON.parse(blocks[at + 1]?.text ?? '') as unknown }] : [],
  );
  return { schema: textOf('prisma'), table: textOf('sql'), programs };
}

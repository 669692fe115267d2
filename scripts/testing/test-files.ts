// The test files of a run, in their order.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

const waitsMark = /^\/\/ Waits (\d+) s: (.*)$/m;
const sharesMark = /\buseSharedGateway\(/;

/**
 * Test files whose path contains one of the words. Those that wait for a constant come first, so that nothing waits for them in the end.
 * The list comes from the sources, because an old build may have left other files.
 */
export function findTests(words: readonly string[]): string[] {
  const all = ['test/behaviour', 'test/unit']
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .sort();
  const waiting = all.filter((path) => waitOf(path) !== null);
  return [...waiting, ...all.filter((path) => !waiting.includes(path))];
}

/** The constant that a file waits for, from its head; null if it waits for none. */
export function waitOf(path: string): { seconds: number; reason: string } | null {
  const [, seconds, reason] = waitsMark.exec(readFileSync(path, 'utf8')) ?? [];
  if (seconds === undefined || reason === undefined) return null;
  return { seconds: Number(seconds), reason };
}

/** The names of the folders in which at least one of these files uses the folder's gateway. */
export function sharingFolders(tests: readonly string[]): string[] {
  const sharing = tests.filter((path) => sharesMark.test(readFileSync(path, 'utf8')));
  return [...new Set(sharing.map((path) => basename(dirname(path))))];
}

/** The path of the compiled test file. */
export function compiled(path: string): string {
  return resolve('dist', path.replace(/\.ts$/, '.js'));
}

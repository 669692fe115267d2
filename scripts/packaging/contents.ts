// The contents of a package as both packers take them, and the texts by which both packages describe themselves.
import { execFileSync } from 'node:child_process';
import type { PackagedFile } from './files.ts';

/** How hard the packer compresses. `low` is for packages that go nowhere, as in tests. */
export type Effort = 'high' | 'low';

/** A package that is ready to be packed: its files are below `root`, and `work` is a folder for the packer. */
export type Contents = {
  readonly work: string;
  readonly root: string;
  readonly files: readonly PackagedFile[];
  readonly out: string;
  readonly version: string;
  readonly revision: number;
  readonly epochSeconds: number;
  readonly license: string;
  /** A name and an address; empty: not known. */
  readonly maintainer: string;
  /** Empty: not known. */
  readonly repository: string;
  readonly effort: Effort;
};

/** The oldest Node that the package admits. package.json's `engines` has all of them. */
export const oldestNode = '20.19';

/** One line about the package. */
export const summary = 'MySQL and MariaDB over HTTP and JSON';

/** The paragraphs about the package. */
export const description = [
  'dbhttpd is a gateway in front of MySQL or MariaDB. Programs send SQL over HTTP, and get JSON. It keeps a pool of connections, limits how long a request waits, and runs no statement twice.',
  `It needs Node.js 20 (${oldestNode} or later), 22, 24 or 26. Debian 13 has it. Debian 12, Ubuntu 24.04 and others have an older one: install the package nodejs of NodeSource (https://github.com/nodesource/distributions) first.`,
] as const;

/** Runs a packer. Throws with what it printed if it fails. */
export function runPacker(
  command: string,
  args: readonly string[],
  { epochSeconds }: Pick<Contents, 'epochSeconds'>,
): void {
  execFileSync(command, [...args], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epochSeconds), LC_ALL: 'C', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Breaks a paragraph into lines of at most this many characters. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last !== '' && last.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines;
}

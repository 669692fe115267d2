// Sources, scripts, tests and documents are written in plain English: some words and beginnings of sentences stay out of them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

/** `isOfCode`: it is about names and comments, which documents do not have. */
type Rule = { readonly name: string; readonly pattern: RegExp; readonly isOfCode?: true };

const code = ['src', 'scripts', 'test'];
const documents = ['docs', 'deploy', 'README.md', 'CONTRIBUTING.md', '.github'];
const rules: readonly Rule[] = [
  {
    name: 'servers, files and requests are not people, and "anew" is "again"',
    pattern: /\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hosoever|[Ww]hom|[Aa]new)\b/,
  },
  {
    name: 'facts are reported, not told',
    pattern: /\b(?:[Tt]old|[Uu]ntold|\w+Told)\b/,
  },
  { name: '"but for" is "except"', pattern: /\b[Bb]ut for\b/ },
  {
    name: 'limits are min and max, not least and most',
    pattern: /\b(?:most|least|fewest)[A-Z]\w*/,
    isOfCode: true,
  },
  {
    name: 'a comment begins with its subject',
    pattern: /^\s*(?:\/\/|\/\*\*|\*|#) (?:Of|Where|What|Who|Whom|Whose) /,
    isOfCode: true,
  },
  {
    name: 'the linter says what a file must not know',
    pattern: /^\s*(?:\/\/|\*|#|--) Must not \w+/,
    isOfCode: true,
  },
];

/** The account `nobody` of the system, and this file. */
const allowed = /`nobody`|'mysql', 'nobody'/;
const own = 'test/unit/scripts/plain-english.test.ts';
const binary = /\.(?:png|wasm|gz|json|svg)$/;

/** The files below a folder, or the file itself. */
function listFiles(folder: string): readonly string[] {
  if (statSync(folder).isFile()) return [folder];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !binary.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => path !== own);
}

for (const { name, pattern, isOfCode = false } of rules) {
  const folders = isOfCode ? code : [...code, ...documents];
  test(`${folders.join(', ')}: ${name}`, () => {
    const files = folders.flatMap(listFiles);
    assert.ok(files.length > 100, `${files.length} files`);
    const found = files.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          pattern.test(line) && !allowed.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
        ),
    );
    assert.deepEqual(found, []);
  });
}

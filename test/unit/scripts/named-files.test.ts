// The pages for contributors name files by short paths (`http/intake`, `pool/`): each of them exists.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

/** The pages, with their number of named files, about. */
const pages = { 'docs/contributing/architecture.md': 60, 'CONTRIBUTING.md': 30 } as const;
/** The folders that the pages leave out at the beginning of a path. */
const roots = ['', 'src', 'src/worker', 'src/supervisor', 'src/shared'];
/** The package's own name for the client library, and the output of the compiler. */
const others = ['dbhttpd/client', 'dist/'];

const folders = ['src', 'scripts', 'test', 'deploy', 'docs'].flatMap((root) =>
  readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .concat(root),
);

/** Paths, folders (`pool/`) and files (`app.ts`) in a page; no links and no addresses. */
function findNames(text: string): readonly string[] {
  const plain = text.replace(/https?:\S+/g, '').replace(/\]\([^)]*\)/g, ']');
  const paths = plain.matchAll(
    /(?<![\w/.:@-])[\w-]+(?:\/[\w.-]*[\w-])*(?:\/(?![\w.*])|(?<=\/[\w.-]+))/g,
  );
  return [...new Set([...paths].map(([name]) => name))].filter((name) => !others.includes(name));
}

function exists(name: string): boolean {
  if (/^[\w-]+\/$/.test(name)) return folders.includes(name.slice(0, -1));
  return roots.some((root) => existsSync(join(root, name)) || existsSync(join(root, `${name}.ts`)));
}

for (const [page, count] of Object.entries(pages)) {
  test(`every file that ${page} names exists`, () => {
    const names = findNames(readFileSync(page, 'utf8'));
    assert.ok(names.length > count, `${names.length} names`);
    assert.deepEqual(
      names.filter((name) => !exists(name)),
      [],
    );
  });
}

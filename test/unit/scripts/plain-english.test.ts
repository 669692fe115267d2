// The source is written in plain English: some words for people, and some that few readers know, stay out of it.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

/** Servers, files and requests are not people; and "anew" is "again". */
const unwanted = /\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hosoever|[Ww]hom|[Aa]new)\b/;

test('no comment, message or name in src has a word that plain English does without', () => {
  const sources = readdirSync('src', { encoding: 'utf8', recursive: true })
    .filter((name) => /\.(?:ts|html|css)$/.test(name))
    .map((name) => join('src', name));
  assert.ok(sources.length > 100, `${sources.length} files`);
  const found = sources.flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        unwanted.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : [],
      ),
  );
  assert.deepEqual(found, []);
});

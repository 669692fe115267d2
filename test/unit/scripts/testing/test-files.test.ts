// The files of a run and their order; and that test/README.md lists the folders that exist.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  compiled,
  findTests,
  sharingFolders,
  waitOf,
} from '../../../../scripts/testing/test-files.ts';

const readme = readFileSync('test/README.md', 'utf8');

test('finds the files with one of the words in their path, and all of them without a word', () => {
  const own = 'test/unit/scripts/testing/test-files.test.ts';
  assert.deepEqual(findTests(['scripts/testing/test-files']), [own]);
  assert.ok(findTests([]).includes(own));
  assert.deepEqual(findTests(['no file has this in its path']), []);
  assert.ok(compiled(own).endsWith('/dist/test/unit/scripts/testing/test-files.test.js'));
});

test('files that wait for a constant come first', () => {
  const waits = findTests([]).map((path) => waitOf(path) !== null);
  assert.equal(waits.lastIndexOf(true) + 1, waits.indexOf(false));
});

test('a folder shares a gateway when one of its files uses it', () => {
  assert.deepEqual(sharingFolders(findTests(['scripts/testing/test-files'])), []);
  for (const folder of sharingFolders(findTests([]))) {
    assert.ok(readdirSync('test/behaviour').includes(folder), folder);
  }
});

test('test/README.md names every folder of features, and no other', () => {
  const named = [...readme.matchAll(/^\| `([a-z0-9]+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(named.sort(), readdirSync('test/behaviour').sort());
});

test('test/README.md lists every file that waits, with its seconds and its reason', () => {
  const listed = [...readme.matchAll(/^\| `(\S+\.test\.ts)` \| (\d+) s \| (.*) \|$/gm)].map(
    ([, path, seconds, reason]) => `${path}: ${seconds} s: ${reason}`,
  );
  const waiting = findTests([]).flatMap((path) => {
    const wait = waitOf(path);
    const name = path.replace('test/', '');
    return wait === null ? [] : [`${name}: ${wait.seconds} s: ${wait.reason}`];
  });
  assert.deepEqual(listed.sort(), waiting.sort());
});

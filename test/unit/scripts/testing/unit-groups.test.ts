// Which unit test files share a process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findTests } from '../../../../scripts/testing/test-files.ts';
import { divide, needsOwnProcess } from '../../../../scripts/testing/unit-groups.ts';

const files = findTests([]);
const { groups, alone } = divide(files);

test('every file of a run is in one group, or alone', () => {
  const divided = [...alone, ...groups.flatMap((group) => group.files)];
  assert.deepEqual(divided.sort(), [...files].sort());
  assert.equal(new Set(divided).size, files.length);
});

test('a group has several unit tests of one folder, and a folder has one group', () => {
  assert.ok(groups.length > 10);
  assert.equal(new Set(groups.map(({ name }) => name)).size, groups.length);
  for (const group of groups) {
    assert.ok(group.files.length > 1, group.name);
    const folder = `test/unit/${group.name.replace('-', '/')}/`;
    for (const file of group.files) assert.ok(file.startsWith(folder), `${group.name}: ${file}`);
  }
});

test('a single file is alone', () => {
  const [file = ''] = groups[0]?.files ?? [];
  assert.deepEqual(divide([file]), { groups: [], alone: [file] });
});

test('a file that changes its process has a process of its own', () => {
  for (const text of [
    'before(() => {});',
    'afterEach(async () => {});',
    "test('a name', (t) => t.mock.timers.enable());",
    "process.env.TZ = 'UTC';",
    "process.once('exit', end);",
    'process.exitCode = 1;',
    'globalThis.fetch = answer;',
    'performance.now = () => 0;',
    "import { fork } from 'node:child_process';",
    "import { Worker } from 'node:worker_threads';",
  ]) {
    assert.ok(needsOwnProcess(text), text);
  }
  for (const text of ["test('runs before another', () => {});", 'const own = process.pid;']) {
    assert.ok(!needsOwnProcess(text), text);
  }
});

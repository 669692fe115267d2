// The report of a process with several test files.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';

/** Writes these modules and one that loads them as a group, and runs it. Returns what it prints. */
function runGroup(t: TestContext, modules: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-group-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const paths = Object.entries(modules).map(([name, text]) => write(name, text));
  const loader = JSON.stringify(resolve('dist/scripts/testing/load-group.js'));
  const entry = write(
    'group.mjs',
    `import { loadGroup } from ${loader}; await loadGroup(${JSON.stringify(paths)});`,
  );
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined };
  return spawnSync(process.execPath, [entry], { encoding: 'utf8', env }).stdout;
}

const passing = "import { test } from 'node:test'; test('holds', () => {});";

test('a test that fails is reported with its file, and the tests of other files run', (t) => {
  const failing =
    "import { test } from 'node:test'; test('breaks', () => { throw new Error('on purpose'); });";
  const report = runGroup(t, { 'failing.mjs': failing, 'passing.mjs': passing });
  assert.match(report, /^not ok 1 - breaks\n[^#]*location: '\/.*\/failing\.mjs:1:\d+'/m);
  assert.match(report, /^ok 2 - holds$/m);
});

test('a file that cannot be loaded is a failed test of its name, and the tests of other files run', (t) => {
  const report = runGroup(t, {
    'broken.mjs': "throw new Error('on purpose');",
    'passing.mjs': passing,
  });
  assert.match(report, /^not ok 1 - .*\/broken\.mjs\n[^#]*error: 'on purpose'/m);
  assert.match(report, /^ok 2 - holds$/m);
});

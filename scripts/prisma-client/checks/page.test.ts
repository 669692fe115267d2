// The examples of docs/guides/drivers.md for the generated client: each runs as it stands, and prints what the page shows below it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { setting } from './setting.ts';

const run = promisify(execFile);

test('the page has examples', () => {
  assert.ok(setting.examples.length >= 2);
});

for (const [index, { path, printed }] of setting.examples.entries()) {
  test(`example ${index} prints what the page says`, async () => {
    const { stdout } = await run(process.execPath, [path]);
    assert.deepEqual(JSON.parse(stdout), printed);
  });
}

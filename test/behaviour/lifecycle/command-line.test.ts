// What is no start speaks: help, version, misuse.
// Must not know what a start does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runCommand } from '../../support/daemon.ts';

for (const asked of ['--help', '-h']) {
  test(`${asked} prints the usage and exits 0`, async () => {
    const { status, stdout, stderr } = await runCommand([asked]);
    assert.deepEqual([status, stderr], [0, '']);
    assert.match(stdout, /^usage: dbhttpd -c /);
  });
}

test('--version prints the version of the package', async () => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const finished = await runCommand(['--version']);
  assert.deepEqual(finished, { status: 0, stdout: `dbhttpd ${manifest.version}\n`, stderr: '' });
});

for (const args of [
  [],
  ['-c', 'relative.ini', '-s', 'x'],
  ['-c', '/x', '-s', 'y', '--reload'],
  ['-c', '/x', '-s', 'a:b', '-m', 'b'],
]) {
  test(`a misuse says what is wrong, shows the usage and exits 64: ${args.join(' ')}`, async () => {
    const { status, stdout, stderr } = await runCommand(args);
    assert.deepEqual([status, stdout], [64, '']);
    assert.match(stderr, /^dbhttpd: .+\nusage: /);
  });
}

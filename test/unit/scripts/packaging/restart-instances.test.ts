// After an upgrade: which instances restart, and what is printed about the others. With programs that stand for systemd and the command.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const scripts = 'scripts/packaging/scripts';
const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-restart-'));
after(() => rmSync(directory, { recursive: true }));

test('an upgrade restarts the instances whose configuration the new version accepts, and names the others', () => {
  const calls = join(directory, 'calls');
  const write = (name: string, text: string) =>
    writeFileSync(join(directory, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  write(
    'systemctl',
    `case $1 in
      list-units) printf 'dbhttpd@%s.service loaded active running\\n' world broken away ;;
      *) echo "$*" >>${calls} ;;
    esac`,
  );
  // 78: a fault of the configuration. 69: no server can be reached.
  write('dbhttpd', 'case $5 in broken) exit 78 ;; away) exit 69 ;; esac');
  const { status, stderr } = spawnSync('sh', [join(scripts, 'restart-instances')], {
    encoding: 'utf8',
    env: { PATH: `${directory}:${process.env.PATH}` },
  });
  assert.equal(status, 0, stderr);
  assert.deepEqual(readFileSync(calls, 'utf8').trim().split('\n'), [
    'restart dbhttpd@world.service',
    'restart dbhttpd@away.service',
  ]);
  assert.match(stderr, /dbhttpd@broken\.service is not restarted.*\n.*--check .* -s broken/);
});

test('every script of the packages is one that sh accepts', () => {
  const names = readdirSync(scripts);
  assert.ok(names.length > 7);
  for (const name of names) {
    const { status, stderr } = spawnSync('sh', ['-n', join(scripts, name)], { encoding: 'utf8' });
    assert.equal(status, 0, `${name}: ${stderr}`);
  }
});

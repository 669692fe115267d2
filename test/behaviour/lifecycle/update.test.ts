// A package that is replaced under a running instance is told by the workers that come after it.
// Must not know how code is compared.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createDaemon } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { parseExposition, sumOf } from '../../support/exposition.ts';
import { gone } from '../../support/processes.ts';

test('a worker of an updated package says so, in the log and in a gauge, and serves', async () => {
  const daemon = createDaemon({ workers: '2' });
  try {
    const copy = join(daemon.directory, 'package');
    mkdirSync(copy);
    cpSync('dist/src', join(copy, 'dist/src'), { recursive: true });
    cpSync('package.json', join(copy, 'package.json'));
    symlinkSync(realpathSync('node_modules'), join(copy, 'node_modules'));
    const command = join(copy, 'dist/src/supervisor/main.js');
    const args = [command, '-c', daemon.configPath, '-s', 'world'];
    assert.equal(spawnSync(process.execPath, args).status, 0, daemon.readLog());
    const count = async (name: string) => {
      const reply = await fetch(`http://${daemon.address()}/metrics`);
      return sumOf(parseExposition(await reply.text()), name);
    };
    const mismatches = () => count('dbhttpd_worker_version_mismatch');
    const workersUp = () => count('dbhttpd_worker_up');
    const replace = async () => {
      const [worker = 0] = daemon.workers();
      process.kill(worker, 'SIGKILL');
      await gone(worker);
      await eventually('both listen', async () => (await workersUp()) === 2);
    };
    daemon.pid();
    await replace();
    assert.equal(await mismatches(), 0);
    assert.ok(!readFileSync(daemon.log, 'utf8').includes('other code'));
    appendFileSync(join(copy, 'dist/src/worker/service.js'), '\n// Updated.\n');
    await replace();
    await eventually('one runs other code', async () => (await mismatches()) === 1);
    assert.match(daemon.readLog(), /warn .*runs other code than its supervisor.* slot=\d/);
  } finally {
    await daemon.dispose();
  }
});

// Starts that meet other starts, and stops: one instance runs in the end, and everybody is told the truth.
// Must not know how a claim is made.
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { createDaemon, type Daemon } from '../../support/daemon.ts';
import { isAlive } from '../../support/processes.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(): Daemon {
  const daemon = createDaemon();
  daemons.push(daemon);
  return daemon;
}

test('of twenty simultaneous starts one lives and nineteen exit 75', async () => {
  const daemon = create();
  const finished = await Promise.all(Array.from({ length: 20 }, () => daemon.start()));
  const statuses = finished.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [0, ...Array<number>(19).fill(75)]);
  assert.ok(finished.every(({ stdout, stderr }) => stdout === '' && stderr === ''));
  assert.ok(isAlive(daemon.pid()));
});

test('kill and a start at once always end with one running', async () => {
  const daemon = create();
  assert.equal((await daemon.start()).status, 0);
  for (let round = 0; round < 12; round += 1) {
    const before = daemon.pid();
    process.kill(before, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    assert.notEqual(daemon.pid(), before);
    assert.ok(isAlive(daemon.pid()));
  }
});

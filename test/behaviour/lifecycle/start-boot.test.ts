// A start whose workers die at boot: patient, cheap, and told before the start's own bound has passed.
// Must not know what the gateway answers.
// Runs alone: seven boots and the waits between them have fifteen seconds.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { readCpuMs } from '../../../scripts/support/proc.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';

const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function create(settings?: Settings): Daemon {
  const daemon = createDaemon(settings);
  daemons.push(daemon);
  return daemon;
}

const faults = new URL('./support/worker-faults.js', import.meta.url).href;
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import ${faults}`, WORKER_FAULT: fault });

test('workers that die at boot are retried ever later and cheaply, then the start exits 69', async () => {
  for (const workers of ['1', '2']) {
    const daemon = create({ workers });
    const began = performance.now();
    const start = daemon.start(withFault('boot'));
    const supervisor = await eventually('a supervisor is there', () => daemon.findPid());
    const retries = () => [...daemon.readLog().matchAll(/slot=0 delay_ms=(\d+)/g)];
    await eventually('a worker has died', () => retries().length > 0);
    // Retrying is what has to be cheap: the supervisor's own start takes longer on a slower machine.
    const first = { cpuMs: readCpuMs(supervisor) ?? 0, at: performance.now() };
    let { cpuMs } = first;
    await eventually(
      'it has ended',
      () => {
        const readMs = readCpuMs(supervisor);
        if (readMs !== null) cpuMs = Math.max(cpuMs, readMs);
        return readMs === null;
      },
      { timeoutMs: 15_000 },
    );
    assert.deepEqual(await start, { status: 69, stdout: '', stderr: '' });
    const tookMs = performance.now() - began;
    assert.ok(tookMs < 15_000, `${tookMs} ms`);
    const [spentMs, waitedMs] = [cpuMs - first.cpuMs, performance.now() - first.at];
    assert.ok(spentMs < waitedMs / 40, `${spentMs} ms of CPU time in ${waitedMs} ms`);
    const delays = retries().map((match) => Number(match[1]));
    assert.ok(delays.length >= 5, `${delays}`);
    for (const [index, delay] of delays.slice(1).entries()) {
      assert.ok(delay > (delays[index] ?? 0), `${delays}`);
    }
    assert.match(daemon.readLog(), /a fault at boot, on purpose/);
    assert.match(daemon.readLog(), /workers keep dying at boot/);
    assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
  }
});

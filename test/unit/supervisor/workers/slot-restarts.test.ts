// A slot is filled at once after a sound worker, and with growing delays while workers die at boot.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRestart, isHopeless } from '../../../../src/supervisor/workers/slot.ts';

test('delays double from 0.1 s to 10 s while workers die at boot', () => {
  let failures = 0;
  const delays: number[] = [];
  for (let death = 0; death < 10; death += 1) {
    const decision = decideRestart(null, failures, 0);
    failures = decision.failures;
    delays.push(decision.delayMs);
  }
  assert.deepEqual(delays, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
});

test('a worker that served is replaced at once, however often', () => {
  const decision = decideRestart(600, 7, 0.5);
  assert.deepEqual(decision, { failures: 0, delayMs: 100 });
});

test('chance takes at most a fifth off, and never goes below 0.1 s', () => {
  assert.equal(decideRestart(null, 3, 1).delayMs, 640);
  assert.equal(decideRestart(null, 0, 1).delayMs, 100);
});

test('a first boot is given up after seven deaths in one slot', () => {
  assert.deepEqual([6, 7].map(isHopeless), [false, true]);
});

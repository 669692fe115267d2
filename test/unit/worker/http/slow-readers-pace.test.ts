// When a reader is slow: by what it has acknowledged over two seconds, seen often enough.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pace } from '../../../../src/worker/http/slow-readers.ts';

const kib = 1024;

/** A pace that was measured every 400 ms, with these sums of acknowledged bytes. */
function looked(bytesAt: (ms: number) => number, untilMs: number, everyMs = 400): Pace {
  const pace = new Pace();
  pace.begins(0);
  for (let now = 0; now <= untilMs; now += everyMs) {
    pace.note({ bytes: bytesAt(now), isExact: true }, now);
  }
  return pace;
}

test('a reader is slow only after a measurement of two seconds', () => {
  assert.equal(looked(() => 0, 1_600).isSlow, false);
  assert.equal(looked(() => 0, 2_000).isSlow, true);
});

test('64 KiB a second are not slow, however large the steps in which they are acknowledged', () => {
  assert.equal(looked((ms) => Math.floor(ms / 1_000) * 64 * kib, 20_000).isSlow, false);
  assert.equal(looked((ms) => ms * 64, 20_000).isSlow, true);
});

test('bytes that a reader took before the last two seconds do not count', () => {
  assert.equal(looked((ms) => Math.min(ms, 10_000) * 1_000, 12_000).isSlow, true);
  assert.equal(looked((ms) => Math.min(ms, 10_000) * 1_000, 11_200).isSlow, false);
});

test('a gateway that was stopped does not blame the reader', () => {
  assert.equal(looked(() => 0, 6_000, 3_000).isSlow, false);
});

test('a reader that waits again at once keeps its pace; after a pause its pace begins again', () => {
  const pace = looked(() => 0, 2_000);
  pace.pauses(2_000);
  pace.begins(2_100);
  pace.note({ bytes: 0, isExact: true }, 2_400);
  assert.equal(pace.isSlow, true);
  pace.pauses(2_500);
  pace.begins(3_000);
  assert.equal(pace.isSlow, false);
});

test('two ways to measure are not compared with each other', () => {
  const pace = looked((ms) => ms * 1_000, 2_000);
  pace.note({ bytes: 0, isExact: false }, 2_400);
  assert.equal(pace.bytesPerSecond, null);
});

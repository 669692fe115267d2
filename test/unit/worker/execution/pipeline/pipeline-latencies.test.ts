// Which shapes may use the pipeline: a streak of quick answers earns it, one slow answer costs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LatencyTracker } from '../../../../../src/worker/execution/pipeline/pipeline.ts';

const shape = 4711;
const needed = 8;

/** A memory in which the shape is quick. */
function quick(shapes: readonly number[] = [shape]): LatencyTracker {
  const latencies = new LatencyTracker();
  for (const one of shapes) earn(latencies, one);
  return latencies;
}

function earn(latencies: LatencyTracker, one = shape): void {
  for (let n = 0; n < needed; n += 1) latencies.noteOutside(one, 1, 100);
}

test('eight quick answers in a row make a shape quick, seven do not', () => {
  const latencies = new LatencyTracker();
  assert.equal(latencies.isQuick(shape, 0), false);
  for (let n = 1; n < needed; n += 1) {
    latencies.noteOutside(shape, 1, 100);
    assert.equal(latencies.isQuick(shape, 0), false, `after ${n}`);
  }
  latencies.noteOutside(shape, 1, 100);
  assert.equal(latencies.isQuick(shape, 0), true);
  assert.equal(latencies.isQuick(shape + 1, 0), false);
});

for (const [what, ms, bytes] of [
  ['slow', 20.1, 100],
  ['large', 1, 8 * 1024 + 1],
] as const) {
  test(`a ${what} answer ends the streak`, () => {
    const latencies = new LatencyTracker();
    for (let n = 1; n < needed; n += 1) latencies.noteOutside(shape, 1, 100);
    latencies.noteOutside(shape, ms, bytes);
    for (let n = 1; n < needed; n += 1) latencies.noteOutside(shape, 1, 100);
    assert.equal(latencies.isQuick(shape, 0), false);
    latencies.noteOutside(shape, 1, 100);
    assert.equal(latencies.isQuick(shape, 0), true);
  });
}

test('in the pipeline one slow or large answer costs the place at once', () => {
  for (const [ms, bytes] of [
    [51, 100],
    [1, 8 * 1024 + 1],
  ] as const) {
    const latencies = quick();
    latencies.notePipelined(shape, 50, 8 * 1024, 1_000);
    assert.equal(latencies.isQuick(shape, 1_000), true);
    latencies.notePipelined(shape, ms, bytes, 1_000);
    assert.equal(latencies.isQuick(shape, 1_000), false);
    earn(latencies);
    assert.equal(latencies.isQuick(shape, 1_249), false);
    assert.equal(latencies.isQuick(shape, 1_250), true);
  }
});

test('each ban lasts twice as long as the one before it, up to a minute', () => {
  const latencies = quick();
  let now = 0;
  for (const ms of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    latencies.ban(shape, now);
    earn(latencies);
    assert.equal(latencies.isQuick(shape, now + ms - 1), false, `${ms}`);
    now += ms;
    assert.equal(latencies.isQuick(shape, now), true, `${ms}`);
  }
});

test('ten seconds without a slow answer and the next ban is a short one', () => {
  const latencies = quick();
  latencies.ban(shape, 0);
  latencies.ban(shape, 300);
  latencies.ban(shape, 20_000);
  earn(latencies);
  assert.equal(latencies.isQuick(shape, 20_249), false);
  assert.equal(latencies.isQuick(shape, 20_250), true);
});

test('many slow answers of one incident are one ban', () => {
  const latencies = quick();
  for (let at = 0; at < 250; at += 10) latencies.ban(shape, at);
  earn(latencies);
  assert.equal(latencies.isQuick(shape, 250), true);
});

test('a ban leaves other shapes alone', () => {
  const latencies = quick([1, 2]);
  latencies.ban(1, 0);
  assert.equal(latencies.isQuick(1, 0), false);
  assert.equal(latencies.isQuick(2, 0), true);
});

test('a forgotten shape must earn its place again: a hundred thousand shapes take no more memory than two thousand', () => {
  const latencies = quick();
  for (let other = 0; other < 100_000; other += 1) latencies.noteOutside(1e9 + other, 1, 100);
  assert.equal(latencies.isQuick(shape, 0), false);
  earn(latencies);
  for (let other = 0; other < 1_999; other += 1) latencies.noteOutside(other, 1, 100);
  assert.equal(latencies.isQuick(shape, 0), true);
  latencies.noteOutside(2_000, 1, 100);
  assert.equal(latencies.isQuick(shape, 0), false);
});

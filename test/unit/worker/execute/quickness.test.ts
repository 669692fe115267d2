// Which shapes are let into the lane: a streak of quick answers earns it, one slow answer costs it.
// Must not know the lane.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Quickness } from '../../../../src/worker/execute/latency-tracker.ts';

const shape = 4711;
const needed = 8;

/** A memory in which the shape is quick. */
function quick(shapes: readonly number[] = [shape]): Quickness {
  const quickness = new Quickness();
  for (const one of shapes) earn(quickness, one);
  return quickness;
}

function earn(quickness: Quickness, one = shape): void {
  for (let n = 0; n < needed; n += 1) quickness.noteOutside(one, 1, 100);
}

test('eight quick answers in a row make a shape quick, seven do not', () => {
  const quickness = new Quickness();
  assert.equal(quickness.isQuick(shape, 0), false);
  for (let n = 1; n < needed; n += 1) {
    quickness.noteOutside(shape, 1, 100);
    assert.equal(quickness.isQuick(shape, 0), false, `after ${n}`);
  }
  quickness.noteOutside(shape, 1, 100);
  assert.equal(quickness.isQuick(shape, 0), true);
  assert.equal(quickness.isQuick(shape + 1, 0), false);
});

for (const [what, ms, bytes] of [
  ['slow', 20.1, 100],
  ['large', 1, 8 * 1024 + 1],
] as const) {
  test(`a ${what} answer ends the streak`, () => {
    const quickness = new Quickness();
    for (let n = 1; n < needed; n += 1) quickness.noteOutside(shape, 1, 100);
    quickness.noteOutside(shape, ms, bytes);
    for (let n = 1; n < needed; n += 1) quickness.noteOutside(shape, 1, 100);
    assert.equal(quickness.isQuick(shape, 0), false);
    quickness.noteOutside(shape, 1, 100);
    assert.equal(quickness.isQuick(shape, 0), true);
  });
}

test('in the lane one slow or large answer costs the place at once', () => {
  for (const [ms, bytes] of [
    [51, 100],
    [1, 8 * 1024 + 1],
  ] as const) {
    const quickness = quick();
    quickness.noteInLane(shape, 50, 8 * 1024, 1_000);
    assert.equal(quickness.isQuick(shape, 1_000), true);
    quickness.noteInLane(shape, ms, bytes, 1_000);
    assert.equal(quickness.isQuick(shape, 1_000), false);
    earn(quickness);
    assert.equal(quickness.isQuick(shape, 1_249), false);
    assert.equal(quickness.isQuick(shape, 1_250), true);
  }
});

test('each ban lasts twice as long as the one before it, up to a minute', () => {
  const quickness = quick();
  let now = 0;
  for (const ms of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    quickness.ban(shape, now);
    earn(quickness);
    assert.equal(quickness.isQuick(shape, now + ms - 1), false, `${ms}`);
    now += ms;
    assert.equal(quickness.isQuick(shape, now), true, `${ms}`);
  }
});

test('ten seconds without a slow answer and the next ban is a short one', () => {
  const quickness = quick();
  quickness.ban(shape, 0);
  quickness.ban(shape, 300);
  quickness.ban(shape, 20_000);
  earn(quickness);
  assert.equal(quickness.isQuick(shape, 20_249), false);
  assert.equal(quickness.isQuick(shape, 20_250), true);
});

test('many slow answers of one incident are one ban', () => {
  const quickness = quick();
  for (let at = 0; at < 250; at += 10) quickness.ban(shape, at);
  earn(quickness);
  assert.equal(quickness.isQuick(shape, 250), true);
});

test('a ban leaves other shapes alone', () => {
  const quickness = quick([1, 2]);
  quickness.ban(1, 0);
  assert.equal(quickness.isQuick(1, 0), false);
  assert.equal(quickness.isQuick(2, 0), true);
});

test('what was forgotten has to be earned again: a million shapes take no more memory than two thousand', () => {
  const quickness = quick();
  for (let other = 0; other < 1_000_000; other += 1) quickness.noteOutside(1e9 + other, 1, 100);
  assert.equal(quickness.isQuick(shape, 0), false);
  earn(quickness);
  for (let other = 0; other < 1_999; other += 1) quickness.noteOutside(other, 1, 100);
  assert.equal(quickness.isQuick(shape, 0), true);
  quickness.noteOutside(2_000, 1, 100);
  assert.equal(quickness.isQuick(shape, 0), false);
});

// Lag as the age of the first of the primary's positions that a replica lacks.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Position, readMariadbPosition } from '../../../../src/shared/servers/position.ts';
import { LagTracker } from '../../../../src/worker/servers/lag.ts';

const at = (number: number) =>
  readMariadbPosition({
    binlogState: `0-1-${number}`,
    binlogPos: `0-1-${number}`,
    slavePos: '',
  }) as Position;

/** The primary's position was its number of seconds, once a second. */
function tracker(seconds: number): LagTracker {
  const lag = new LagTracker();
  for (let second = 1; second <= seconds; second += 1) lag.note(second * 1_000, at(second));
  return lag;
}

test('a replica with the latest position has no lag; otherwise its lag is the age of the first position that it lacks', () => {
  const lag = tracker(10);
  assert.equal(lag.lagOf(at(10), 10_500), 0);
  assert.equal(lag.lagOf(at(9), 10_500), 500);
  assert.equal(lag.lagOf(at(4), 10_500), 5_500);
  assert.equal(lag.lagOf(at(4), 4_500), 0, 'it was looked at before the primary had more');
});

test('a primary that writes nothing makes no lag', () => {
  const lag = tracker(3);
  for (let second = 4; second < 60; second += 1) lag.note(second * 1_000, at(3));
  assert.equal(lag.lagOf(at(3), 60_000), 0);
  lag.note(60_000, at(4));
  assert.equal(lag.lagOf(at(3), 61_000), 1_000);
});

test('without a known position, or with another kind of position, the lag is unknown', () => {
  assert.equal(new LagTracker().lagOf(at(1), 0), null);
  const galera: Position = { kind: 'galera', cluster: 'c', committed: 1n };
  assert.equal(tracker(3).lagOf(galera, 4_000), null);
  const cleared = tracker(3);
  cleared.clear();
  assert.equal(cleared.lagOf(at(3), 4_000), null);
});

test('however long it runs, a lag is never understated, and overstated by a sixteenth at most', () => {
  const seconds = 20_000;
  const lag = tracker(seconds);
  const now = seconds * 1_000 + 500;
  for (let reached = 0; reached < seconds; reached += 3) {
    const real = now - (reached + 1) * 1_000;
    const reported = lag.lagOf(at(reached), now) ?? -1;
    assert.ok(reported >= real && reported <= real * (1 + 1 / 16) + 1, `${reported} of ${real}`);
    if (real < 10_000) assert.equal(reported, real);
  }
});

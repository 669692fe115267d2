// Tells whether one more request would wait for too long: only if a whole window shows it, and never after a burst or an idle time.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Backlog } from '../../../../../src/worker/servers/pool/drain-rate.ts';

/** A backlog of 10 sessions with a longest wait of 5 s, which has served this many requests in each second so far. */
function after(turnsBySecond: readonly number[]): (ahead: number, longestMs?: number) => boolean {
  const backlog = new Backlog(5_000, 10);
  backlog.begins(0);
  for (const [second, turns] of turnsBySecond.entries()) {
    for (let turn = 0; turn < turns; turn += 1) backlog.shortened(second * 1000 + 500);
  }
  const now = turnsBySecond.length * 1000 + 1;
  return (ahead, longestMs = 5_000) => backlog.outlasts(ahead, longestMs, now);
}

test('there is no verdict before a request has waited for as long as one may', () => {
  assert.equal(after([0, 0, 0, 0])(100_000), false);
});

test('a request would wait too long if all that is served in a longest wait, and all sessions at once, are not enough', () => {
  const outlasts = after([20, 20, 20, 20, 20]);
  assert.deepEqual([outlasts(109), outlasts(110)], [false, true]);
});

test('a request that may wait for a part of it only may be behind fewer', () => {
  const outlasts = after([20, 20, 20, 20, 20]);
  assert.deepEqual([outlasts(29, 1_000), outlasts(30, 1_000)], [false, true]);
});

test('statements that end all at one time, seconds apart, do not count as a standstill', () => {
  // At most three of them in any five seconds, in the window before or in this one.
  const outlasts = after([0, 10, 0, 10, 0, 10, 0, 10, 0]);
  assert.deepEqual([outlasts(29), outlasts(30)], [false, true]);
});

test('if no request was served in a whole window, only as many may wait as there are sessions', () => {
  const outlasts = after([50, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual([outlasts(9), outlasts(10)], [false, true]);
});

test('a queue that was empty starts again', () => {
  const backlog = new Backlog(5_000, 10);
  backlog.begins(0);
  assert.equal(backlog.outlasts(10, 5_000, 6_000), true);
  backlog.begins(6_000);
  assert.equal(backlog.outlasts(1_000, 5_000, 10_000), false);
});

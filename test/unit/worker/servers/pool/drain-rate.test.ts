// The time after which a client should come again follows the measured rate of the queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DrainRate } from '../../../../../src/worker/servers/pool/drain-rate.ts';

/** Notes `perSecond` requests a second from `fromMs` for `seconds`. */
function drain(rate: DrainRate, fromMs: number, seconds: number, perSecond: number): void {
  for (let index = 0; index < seconds * perSecond; index += 1) {
    rate.note(fromMs + (index * 1000) / perSecond);
  }
}

test('estimates how long the waiting requests will take at the rate of the last seconds', () => {
  const rate = new DrainRate(0);
  drain(rate, 0, 10, 50);
  assert.equal(rate.retryAfterSeconds(1000, 9_999), 20);
  assert.equal(rate.retryAfterSeconds(100, 9_999), 2);
});

test('follows a queue that has become slower', () => {
  const rate = new DrainRate(0);
  drain(rate, 0, 10, 500);
  drain(rate, 10_000, 5, 10);
  assert.equal(rate.retryAfterSeconds(100, 14_999), 10);
});

test('is always between 1 and 30 seconds', () => {
  const rate = new DrainRate(0);
  assert.equal(rate.retryAfterSeconds(1, 0), 30);
  assert.equal(rate.retryAfterSeconds(0, 0), 1);
  drain(rate, 0, 5, 1000);
  assert.equal(rate.retryAfterSeconds(10, 4_999), 1);
  assert.equal(rate.retryAfterSeconds(1_000_000, 4_999), 30);
  assert.equal(rate.retryAfterSeconds(10, 60_000), 30);
});

test('knows the rate within the first second', () => {
  const rate = new DrainRate(500);
  drain(rate, 500, 0.2, 100);
  assert.equal(rate.retryAfterSeconds(1000, 700), 10);
});

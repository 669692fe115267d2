// A worker hangs after ten unanswered pings, and not before.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Heartbeat } from '../../../../src/supervisor/workers/slot.ts';

test('ten unanswered pings mean that a worker hangs, and an answer to the last one counts for all', () => {
  const heartbeat = new Heartbeat();
  for (let tick = 1; tick <= 10; tick += 1) {
    assert.deepEqual(heartbeat.tick(), { kind: 'ping', sequence: tick });
    assert.equal(heartbeat.isSilent(), tick >= 2);
  }
  assert.deepEqual(heartbeat.tick(), { kind: 'hung' });
  heartbeat.pong(10);
  assert.equal(heartbeat.isSilent(), false);
  assert.deepEqual(heartbeat.tick(), { kind: 'ping', sequence: 11 });
});

test('an answer to a ping that was never sent counts for nothing', () => {
  const heartbeat = new Heartbeat();
  heartbeat.tick();
  heartbeat.pong(1000);
  for (let tick = 0; tick < 10; tick += 1) assert.equal(heartbeat.tick().kind, 'ping');
  assert.equal(heartbeat.tick().kind, 'hung');
});

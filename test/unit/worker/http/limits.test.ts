// The number of connections follows from the descriptors. Some are reserved for health checks and for the gateway itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideConnectionLimit, openFilesLimit } from '../../../../src/worker/http/limits.ts';

test('never promises more descriptors than there are', () => {
  for (const descriptors of [128, 256, 1024, 20_000, 1_048_576]) {
    const { served, reserved } = decideConnectionLimit(descriptors, 12);
    assert.ok(served + reserved + 12 + 40 <= descriptors, `${descriptors}`);
    assert.ok(served > 0 && reserved > 0);
  }
});

test('takes 16,384 at most, and most of a usual limit', () => {
  assert.deepEqual(decideConnectionLimit(1_048_576, 12), { served: 16_384, reserved: 256 });
  assert.ok(decideConnectionLimit(1024, 12).served > 800);
});

test('serves at least one connection even if there is hardly a descriptor', () => {
  assert.deepEqual(decideConnectionLimit(40, 12), { served: 8, reserved: 8 });
});

test('reads the limit of this process', () => {
  assert.ok(openFilesLimit() >= 64);
});

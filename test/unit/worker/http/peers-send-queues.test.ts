// The kernel's table of TCP connections is read once for all callers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SendQueues } from '../../../../src/worker/http/peers.ts';

test('all calls within a moment share one read', async () => {
  const reads: string[][] = [];
  const queues = new SendQueues(async (names) => {
    reads.push([...names]);
    return new Map([['a b', 100]]);
  });
  const asked = ['a b', 'c d', 'a b'].map((name) => queues.unacknowledged(name));
  assert.deepEqual(await Promise.all(asked), [100, null, 100]);
  assert.deepEqual(reads, [['a b', 'c d']]);
  assert.equal(await queues.unacknowledged('a b'), 100);
  assert.equal(reads.length, 2);
});

test('without a table nothing is known', async () => {
  const queues = new SendQueues(() => Promise.reject(new Error('ENOENT')));
  assert.deepEqual(
    await Promise.all([queues.unacknowledged('a b'), queues.unacknowledged('c d')]),
    [null, null],
  );
});

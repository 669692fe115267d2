// The promise of `queue`: it bounds all waiting requests, in any place, and counts each of them once.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Admission, Queue } from '../../../../../src/worker/servers/pool/queue.ts';

const createWaiter = (refused: string[] = []): Waiter => ({
  granted: () => assert.fail('there is no session'),
  refused: (reason) => void refused.push(reason),
});

test('requests in the queue and requests that wait elsewhere share the same places', () => {
  const admission = new Admission(() => 2);
  const queue = new Queue(admission);
  queue.add(createWaiter());
  assert.ok(admission.admit());
  assert.ok(!admission.admit(), 'a third one found a place');
  queue.add(createWaiter());
  assert.ok(admission.isOverfull, 'a third one in the queue was not noticed');
  queue.shift();
  assert.ok(!admission.isOverfull);
  admission.leave();
  assert.equal(admission.waiting, 1);
});

test('each way out of the queue gives one place back', () => {
  const admission = new Admission(() => 10);
  const queue = new Queue(admission);
  const [first, second, third, fourth] = [1, 2, 3, 4].map(() => createWaiter());
  for (const waiter of [first, second, third, fourth]) queue.add(waiter as Waiter);
  queue.remove(second as Waiter);
  queue.remove(second as Waiter);
  assert.equal(queue.shift(), first);
  assert.equal(admission.waiting, 2);
  const refused: string[] = [];
  queue.replace(third as Waiter, createWaiter(refused));
  assert.equal(admission.waiting, 2, 'a place that is handed over is the same place');
  queue.refuseAll('stopping');
  assert.deepEqual(refused, ['stopping']);
  assert.equal(admission.waiting, 0);
  assert.equal(queue.shift(), undefined);
  assert.equal(admission.waiting, 0);
});

test("the gateway's own waiters take no place of a request's", () => {
  const admission = new Admission(() => 1);
  const queue = new Queue(admission);
  const own: Waiter = { ...createWaiter(), isOwn: true };
  queue.add(own);
  assert.equal(admission.waiting, 0);
  queue.add(createWaiter());
  assert.ok(!admission.isOverfull, 'the request found no place');
  assert.equal(queue.shift(), own);
  assert.equal(admission.waiting, 1);
});

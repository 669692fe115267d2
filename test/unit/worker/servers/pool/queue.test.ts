// The order in which sessions are lent: a waiter that lost its session in the middle of a transaction comes first, and takes no place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Admission, Queue } from '../../../../../src/worker/servers/pool/queue.ts';

function createQueue() {
  const admission = new Admission(() => 10);
  const queue = new Queue(admission);
  const refused: string[] = [];
  const names = new Map<Waiter, string>();
  const add = (name: string, isRecovering: boolean) => {
    const waiter: Waiter = {
      isRecovering,
      granted: () => assert.fail('there is no session'),
      refused: (reason) => void refused.push(`${name}: ${reason}`),
    };
    names.set(waiter, name);
    queue.add(waiter);
  };
  const next = () => {
    const waiter = queue.shift();
    return waiter === undefined ? null : names.get(waiter);
  };
  return { admission, queue, refused, add, next };
}

test('recovering waiters come before all others, in the order of their arrival, and take no place', () => {
  const { admission, add, next } = createQueue();
  add('a', false);
  add('first', true);
  add('b', false);
  add('second', true);
  assert.equal(admission.waiting, 2);
  assert.deepEqual([next(), next(), next(), next(), next()], ['first', 'second', 'a', 'b', null]);
  assert.equal(admission.waiting, 0);
});

test('if the server is gone, all waiters except the recovering ones are refused; a stop refuses them too', () => {
  const { admission, queue, refused, add } = createQueue();
  add('a', false);
  add('lost', true);
  queue.refuseNew('server unreachable');
  assert.deepEqual(refused, ['a: server unreachable']);
  assert.deepEqual([queue.length, admission.waiting], [1, 0]);
  queue.refuseAll('stopping');
  assert.deepEqual(refused.slice(1), ['lost: stopping']);
  assert.deepEqual([queue.length, admission.waiting], [0, 0]);
});

test('a request that has waited for too long is refused; an identical read takes its place; a recovering one keeps waiting', () => {
  const admission = new Admission(() => 10);
  const queue = new Queue(admission);
  const refused: string[] = [];
  const create = (name: string, since: number, more: Partial<Waiter> = {}): Waiter => ({
    waitLimit: { since, longestMs: 5_000 },
    granted: () => assert.fail('there is no session'),
    refused: (reason) => void refused.push(`${name}: ${reason}`),
    ...more,
  });
  const follower = create('follower', 8);
  const leader = create('leader', 1, { handOverPlace: () => follower });
  const late = create('late', 2);
  const own = { ...create('own', 0), waitLimit: undefined } as unknown as Waiter;
  const recovering = create('recovering', 0, { isRecovering: true });
  const patient = create('patient', 9);
  for (const waiter of [leader, late, own, recovering, patient]) queue.add(waiter);
  queue.refuseLate(({ since }) => since < 5, 'waited too long');
  assert.deepEqual(refused, ['leader: waited too long', 'late: waited too long']);
  const order = Array.from({ length: 4 }, () => queue.shift());
  assert.deepEqual(order, [recovering, follower, own, patient]);
  assert.deepEqual([queue.length, admission.waiting], [0, 0]);
});

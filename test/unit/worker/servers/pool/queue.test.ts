// The order in which sessions are lent: a waiter that lost its session in the middle of a transaction comes first, and takes no place.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PoolAccounts } from '../../../../../src/worker/servers/pool/pool-accounts.ts';
import {
  Admission,
  Queue,
  type RequestWaiter,
  type Waiter,
} from '../../../../../src/worker/servers/pool/queue.ts';
import type { WaitLimit } from '../../../../../src/worker/servers/pool/wait-limit.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

function createQueue() {
  const admission = new Admission(() => 10);
  const rules = { mayTake: () => true, isBelowShare: () => false };
  const queue = new Queue(admission, new PoolAccounts(4, 5_000), rules, () => true);
  const refused: string[] = [];
  const names = new Map<Waiter, string>();
  const account = createAccount();
  const create = (
    name: string,
    limit: Partial<WaitLimit>,
    more: Partial<RequestWaiter> = {},
  ): RequestWaiter => {
    const waiter: RequestWaiter = {
      waitLimit: createLimit({ account, ...limit }),
      granted: () => assert.fail('there is no session'),
      refused: (reason) => void refused.push(`${name}: ${reason}`),
      ...more,
    };
    names.set(waiter, name);
    return waiter;
  };
  const add = (name: string, isRecovering: boolean) =>
    queue.add(create(name, {}, { isRecovering }), 0);
  const next = () => {
    const waiter = queue.take(0);
    return waiter === undefined ? null : names.get(waiter);
  };
  return { admission, queue, refused, create, add, next };
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
  const { admission, queue, refused, create } = createQueue();
  const follower = create('follower', { since: 8 });
  const leader = create('leader', { since: 1 }, { handOverPlace: () => follower });
  const late = create('late', { since: 2 });
  const own: Waiter = { granted: () => {}, refused: () => assert.fail('it may wait') };
  const recovering = create('recovering', { since: 0 }, { isRecovering: true });
  const patient = create('patient', { since: 9 });
  for (const waiter of [leader, late, own, recovering, patient]) queue.add(waiter, 0);
  queue.refuseLate(0, ({ since }) => since < 5, 'waited too long');
  assert.deepEqual(refused, ['leader: waited too long', 'late: waited too long']);
  const order = Array.from({ length: 4 }, () => queue.take(0));
  assert.deepEqual(order, [recovering, own, follower, patient]);
  assert.deepEqual([queue.length, admission.waiting], [0, 0]);
});

test('the oldest requests wait for the connections that are being opened', () => {
  const { queue, create } = createQueue();
  for (const since of [3, 1, 2]) queue.add(create(`${since}`, { since }), 0);
  const patient: number[] = [];
  queue.refuseLate(
    2,
    ({ since }, isPatient) => {
      if (isPatient) patient.push(since);
      return false;
    },
    'waited too long',
  );
  assert.deepEqual(patient, [1, 2]);
});

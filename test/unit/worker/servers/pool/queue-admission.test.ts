// The promise of `queue`: it bounds all waiting requests, in any place, and counts each of them once. A client's own `queue` bounds its own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import { PoolAccounts } from '../../../../../src/worker/servers/pool/pool-accounts.ts';
import {
  Admission,
  Queue,
  type RequestWaiter,
  type Waiter,
} from '../../../../../src/worker/servers/pool/queue.ts';
import { ReservedSessions } from '../../../../../src/worker/servers/pool/reserved-sessions.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

/** A queue with so many places, and waiters that note who was refused. */
function create(places: number, spare = 0) {
  const refused: string[] = [];
  const admission: Admission = new Admission(
    () => places,
    () => spare,
  );
  const accounts = new PoolAccounts(4, 5_000);
  const rules = { mayTake: () => true, isBelowShare: () => false };
  const queue = new Queue(admission, accounts, rules, () => true);
  const createWaiter = (
    name: string,
    limit = createLimit(),
    more: Partial<RequestWaiter> = {},
  ): RequestWaiter => ({
    waitLimit: limit,
    granted: () => assert.fail('there is no session'),
    refused: (reason) => void refused.push(`${name}: ${reason}`),
    ...more,
  });
  const add = (waiter: Waiter) => queue.add(waiter, 0);
  return { admission, accounts, queue, refused, createWaiter, add };
}

test('requests in the queue and requests that wait elsewhere share the same places', () => {
  const { admission, queue, createWaiter, add } = create(2);
  const limit = createLimit();
  add(createWaiter('first', limit));
  assert.equal(admission.admit(limit), null);
  assert.equal(admission.admit(limit), 'queue full');
  add(createWaiter('second', limit));
  assert.ok(admission.isOverfull, 'a third one in the queue was not noticed');
  queue.take(0);
  assert.ok(!admission.isOverfull);
  admission.leave(limit.account);
  assert.deepEqual([admission.waiting, limit.account.waiting], [1, 1]);
});

test('each way out of the queue gives one place back', () => {
  const { admission, queue, refused, createWaiter, add } = create(10);
  const limit = createLimit();
  const [first, second, third, fourth] = ['1', '2', '3', '4'].map((name) =>
    createWaiter(name, limit),
  ) as [RequestWaiter, RequestWaiter, RequestWaiter, RequestWaiter];
  for (const waiter of [first, second, third, fourth]) add(waiter);
  queue.remove(second);
  queue.remove(second);
  assert.equal(queue.take(0), first);
  assert.equal(admission.waiting, 2);
  queue.replace(third, createWaiter('next', limit));
  assert.equal(admission.waiting, 2, 'a place that is handed over is the same place');
  queue.refuseAll('stopping');
  assert.deepEqual(refused, ['next: stopping', '4: stopping']);
  assert.deepEqual([admission.waiting, limit.account.waiting], [0, 0]);
  assert.equal(queue.take(0), undefined);
});

test("the gateway's own waiters take no place of a request's, and come first", () => {
  const { admission, queue, createWaiter, add } = create(1);
  const request = createWaiter('request');
  const own: Waiter = {
    granted: () => assert.fail('there is no session'),
    refused: () => assert.fail('it may wait'),
  };
  add(request);
  add(own);
  assert.ok(!admission.isOverfull, 'the request found no place');
  assert.equal(queue.take(0), own);
  assert.equal(admission.waiting, 1);
});

test('the places of a client count in all places where its requests wait, and none of another one’s', () => {
  const account = createAccount({ queue: 1 });
  const here = create(10);
  const elsewhere = create(10);
  assert.equal(here.admission.admit(createLimit({ account })), null);
  assert.equal(elsewhere.admission.admit(createLimit({ account })), 'client busy');
  assert.equal(elsewhere.admission.admit(createLimit()), null);
  assert.equal(account.waiting, 1);
  const opening = create(10, 1);
  assert.equal(opening.admission.admit(createLimit({ account })), null);
});

test('a full queue rejects the newest request of the client with the longest queue for its share', () => {
  const { admission, refused, createWaiter, add } = create(5);
  const loud = createAccount({ name: 'loud' });
  const heavy = createAccount({ name: 'heavy', share: 4 });
  const quiet = createAccount({ name: 'quiet' });
  for (const n of [1, 2]) add(createWaiter(`loud ${n}`, createLimit({ account: loud })));
  for (const n of [1, 2, 3]) add(createWaiter(`heavy ${n}`, createLimit({ account: heavy })));
  assert.equal(admission.admit(createLimit({ account: quiet })), null);
  assert.deepEqual(refused, ['loud 2: queue full']);
  // Another one of the longest is itself the newest.
  admission.leave(quiet);
  add(createWaiter('loud 3', createLimit({ account: loud })));
  assert.equal(admission.admit(createLimit({ account: loud })), 'queue full');
  assert.deepEqual(refused, ['loud 2: queue full']);
});

test('of clients with equal queues the newest request leaves, so that no two take turns in one place', () => {
  const { admission, refused, createWaiter, add } = create(4);
  const [one, other, third] = ['one', 'other', 'third'].map((name) => createAccount({ name })) as [
    Account,
    Account,
    Account,
  ];
  const owners = [one, other, other, one];
  for (const [at, account] of owners.entries()) {
    add(createWaiter(`${account.client.name} ${at}`, createLimit({ account, since: at })));
  }
  assert.equal(admission.admit(createLimit({ account: third })), null);
  assert.deepEqual(refused, ['one 3: queue full'], 'the newest of the longest');
  assert.equal(admission.admit(createLimit({ account: one })), 'queue full');
  assert.deepEqual(refused, ['one 3: queue full'], 'the newcomer is the newest of both');
});

test('requests that wait to begin a transaction count, and leave, as those in the queue do', (t) => {
  const { admission, accounts, refused, createWaiter, add } = create(3);
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  const reserved = new ReservedSessions({ size: 1, admission, accounts, isLate: () => false });
  t.after(() => reserved.close());
  const begun: string[] = [];
  const begin = (name: string, account: Account, since: number) =>
    reserved.acquire({
      waitLimit: createLimit({ account, since }),
      reserved: () => void begun.push(name),
      refused: (reason) => void refused.push(`${name}: ${reason}`),
    });
  begin('first', loud, 0);
  add(createWaiter('loud 1', createLimit({ account: loud, since: 1 })));
  for (const at of [2, 3]) begin(`loud ${at}`, loud, at);
  assert.deepEqual([begun, admission.waiting], [['first'], 3]);
  begin('quiet', quiet, 4);
  assert.deepEqual(refused, ['loud 3: queue full']);
  assert.equal(admission.admit(createLimit({ account: quiet })), 'queue full', 'two of each');
  reserved.release(loud);
  assert.equal(begun.length, 2);
  reserved.close();
  assert.equal(admission.waiting, 1, 'each place was given back once');
});

test('within the client with the longest queue, the user with the most requests loses the newest one', () => {
  const { admission, refused, createWaiter, add } = create(3);
  const account = createAccount();
  for (const n of [1, 2]) add(createWaiter(`a ${n}`, createLimit({ account, user: 'a' })));
  add(createWaiter('b 1', createLimit({ account, user: 'b' })));
  assert.equal(admission.admit(createLimit({ account, user: 'c' })), null);
  assert.deepEqual(refused, ['a 2: queue full']);
  assert.equal(admission.admit(createLimit({ account, user: 'a' })), 'queue full');
});

test('of users with equal lines the newest request leaves, and never the one whose turn is next', () => {
  const { admission, queue, refused, createWaiter, add } = create(3);
  const account = createAccount();
  for (const user of ['a', 'b', 'c'])
    add(createWaiter(user, createLimit({ account, user, since: user.charCodeAt(0) })));
  assert.equal(admission.admit(createLimit({ account, user: 'd' })), 'queue full');
  assert.deepEqual(refused, [], 'a user of the same client has as many');
  assert.equal(admission.admit(createLimit({ account: createAccount({ name: 'quiet' }) })), null);
  assert.deepEqual(refused, ['c: queue full']);
  assert.equal((queue.take(0) as RequestWaiter).waitLimit.user, 'a');
});

test('an identical read that follows takes the place of the one that a full queue rejects', () => {
  const { admission, queue, refused, createWaiter, add } = create(2);
  const limit = createLimit();
  const first = createWaiter('first', limit);
  const follower = createWaiter('follower', limit);
  add(first);
  add(
    createWaiter('leader', createLimit({ account: limit.account, since: 1 }), {
      handOverPlace: () => follower,
    }),
  );
  assert.equal(admission.admit(createLimit({ account: createAccount() })), null);
  assert.deepEqual(refused, ['leader: queue full']);
  assert.deepEqual([queue.take(0), queue.take(0), queue.take(0)], [first, follower, undefined]);
});

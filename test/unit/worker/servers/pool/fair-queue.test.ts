// The order of turns: the next client is the one that has held connections for the least time for its share. Within a client, users take turns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import type { Queued } from '../../../../../src/worker/servers/pool/client-line.ts';
import { FairQueue } from '../../../../../src/worker/servers/pool/fair-queue.ts';
import {
  type PoolAccount,
  PoolAccounts,
  reservedRoom,
  seenMs,
} from '../../../../../src/worker/servers/pool/pool-accounts.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

type Request = Queued & { readonly name: string };

/** A queue whose clock and rules a test has in its hands. */
function create() {
  const accounts = new PoolAccounts(8, 5_000);
  const blocked = new Set<Account>();
  const below = new Set<Account>();
  const queue = new FairQueue<Request>(accounts, {
    mayTake: ({ account }) => !blocked.has(account),
    isBelowShare: ({ account }) => below.has(account),
  });
  const add = (account: Account, name: string, now: number, user: string | null = null) => {
    accounts.arrive(account, now);
    accounts.noteWait(queue.length === 0, now);
    const request = { name, waitLimit: createLimit({ account, user }) };
    queue.add(request);
    return request;
  };
  /** Serves the next one, which holds a connection for so long. */
  const serve = (now: number, heldMs: number): string | null => {
    const request = queue.take(now);
    if (request === undefined) return null;
    accounts.noteWait(false, now);
    const own = accounts.of(request.waitLimit.account);
    own.begin(now);
    own.end(now, now + heldMs);
    return request.name;
  };
  return { accounts, blocked, below, queue, add, serve };
}

test('one client is served in the order of arrival', () => {
  const { add, serve } = create();
  const account = createAccount();
  for (const name of ['a', 'b', 'c']) add(account, name, 0);
  assert.deepEqual([serve(0, 9), serve(0, 1), serve(0, 5), serve(0, 1)], ['a', 'b', 'c', null]);
});

test('the next turn belongs to the client with the least held time, the time of what runs included', () => {
  const { accounts, add, serve, queue } = create();
  const slow = createAccount({ name: 'slow' });
  const quick = createAccount({ name: 'quick' });
  for (const n of [1, 2, 3]) add(slow, `slow ${n}`, 0);
  for (const n of [1, 2, 3, 4]) add(quick, `quick ${n}`, 0);
  assert.equal(serve(0, 10), 'slow 1');
  for (const n of [1, 2, 3]) assert.equal(serve(0, 3), `quick ${n}`);
  assert.equal(serve(0, 3), 'quick 4');
  add(quick, 'quick 5', 0);
  assert.equal(serve(0, 100), 'slow 2');
  // A request that has run since 0 counts at 200, although it has not ended.
  accounts.of(quick).begin(0);
  assert.equal(queue.take(200)?.name, 'slow 3');
});

test('a client of share 4 gets four times the time of one of share 1', () => {
  const { add, serve } = create();
  const heavy = createAccount({ name: 'heavy', share: 4 });
  const light = createAccount({ name: 'light' });
  const served = { heavy: 0, light: 0 };
  for (const n of [1, 2]) {
    add(heavy, 'heavy', n);
    add(light, 'light', n);
  }
  for (let now = 10; now < 1_010; now += 1) {
    const name = serve(now, 1) as 'heavy' | 'light';
    served[name] += 1;
    add(name === 'heavy' ? heavy : light, name, now);
  }
  assert.ok(Math.abs(served.heavy - 800) <= 4, `${served.heavy} of 1,000 turns`);
});

test('a client below its share comes before one above it, whatever both have held', () => {
  const { below, add, serve } = create();
  const report = createAccount({ name: 'report' });
  const web = createAccount({ name: 'web' });
  add(report, 'report 1', 0);
  assert.equal(serve(0, 10_000), 'report 1');
  add(web, 'web', 1);
  add(report, 'report 2', 1);
  below.add(report);
  assert.equal(serve(1, 1), 'report 2');
  assert.equal(serve(1, 1), 'web');
});

test('a client that may not take is passed over, and keeps its place', () => {
  const { blocked, add, serve, queue } = create();
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  add(loud, 'loud', 0);
  add(quiet, 'quiet', 0);
  blocked.add(loud);
  assert.deepEqual([serve(0, 5), serve(0, 5), queue.length], ['quiet', null, 1]);
  blocked.clear();
  assert.equal(serve(0, 5), 'loud');
});

test('a client that returns starts level with those that wait: it can neither use up time that it has left, nor is it behind', () => {
  const { add, serve } = create();
  const steady = createAccount({ name: 'steady' });
  const other = createAccount({ name: 'other' });
  const returning = createAccount({ name: 'returning' });
  for (let n = 0; n < 300; n += 1)
    add(n % 2 === 0 ? steady : other, n % 2 === 0 ? 'steady' : 'other', 0);
  for (let now = 0; now < 200; now += 1) serve(now, 10);
  for (let n = 0; n < 50; n += 1) add(returning, 'returning', 200);
  const turns = Array.from({ length: 60 }, (_, n) => serve(200 + n, 10));
  const count = turns.filter((name) => name === 'returning').length;
  assert.ok(count >= 19 && count <= 21, `it got ${count} of 60 turns`);
});

test('time that a client has used while no request waited does not count', () => {
  const { accounts, add, serve } = create();
  const longAlone = createAccount({ name: 'long alone' });
  const new1 = createAccount({ name: 'new' });
  const own = accounts.arrive(longAlone, 0);
  own.begin(0);
  own.end(0, 3_600_000);
  const now = 3_600_000;
  for (const n of [1, 2, 3]) {
    add(longAlone, `long alone ${n}`, now);
    add(new1, `new ${n}`, now);
  }
  const turns = Array.from({ length: 4 }, () => serve(now, 10));
  assert.deepEqual(turns, ['long alone 1', 'new 1', 'long alone 2', 'new 2']);
});

test('users of one client take turns, and each is served in the order of arrival', () => {
  const { add, serve } = create();
  const account = createAccount();
  for (const n of [1, 2, 3]) add(account, `ann ${n}`, 0, 'ann');
  for (const n of [1, 2]) add(account, `bob ${n}`, 0, 'bob');
  add(account, 'eve 1', 0, 'eve');
  const turns = Array.from({ length: 6 }, () => serve(0, 5));
  assert.deepEqual(turns, ['ann 1', 'bob 1', 'eve 1', 'ann 2', 'bob 2', 'ann 3']);
});

test('a request that leaves from the middle changes no other turn', () => {
  const { queue, add, serve, accounts } = create();
  const account = createAccount();
  add(account, 'ann 1', 0, 'ann');
  const gone = add(account, 'bob 1', 0, 'bob');
  add(account, 'eve 1', 0, 'eve');
  assert.ok(queue.remove(gone));
  assert.ok(!queue.remove(gone));
  assert.deepEqual([serve(0, 5), serve(0, 5), serve(0, 5)], ['ann 1', 'eve 1', null]);
  assert.deepEqual([queue.length, accounts.of(account).waiting], [0, 0]);
  add(account, 'bob 2', 0, 'bob');
  assert.equal(serve(0, 5), 'bob 2');
});

test('a place is handed over within a user, and at the end of another one’s', () => {
  const { queue, add, serve } = create();
  const account = createAccount();
  const first = add(account, 'first', 0);
  add(account, 'second', 0);
  const own = { name: 'in its place', waitLimit: createLimit({ account }) };
  assert.ok(queue.replace(first, own));
  const other = { name: 'of another user', waitLimit: createLimit({ account, user: 'ann' }) };
  assert.ok(queue.replace(own, other));
  assert.ok(!queue.replace(first, own));
  assert.deepEqual([serve(0, 5), serve(0, 5), queue.length], ['second', 'of another user', 0]);
});

test('the requests ahead of a further one are those of its client that come before it, by its user’s turn', () => {
  const { queue, add, accounts } = create();
  const account = createAccount();
  assert.equal(queue.aheadOf(accounts.of(account), 'ann'), 0);
  for (let n = 0; n < 50; n += 1) add(account, `ann ${n}`, 0, 'ann');
  add(createAccount({ name: 'other' }), 'other', 0);
  assert.equal(queue.aheadOf(accounts.of(account), 'ann'), 50);
  assert.equal(queue.aheadOf(accounts.of(account), 'bob'), 1);
});

test('requests count as ready as far as the client’s max_in_flight allows', () => {
  const { queue, add, accounts } = create();
  const account = createAccount({ maxInFlight: 2 });
  for (const name of ['a', 'b', 'c']) add(account, name, 0);
  assert.equal(queue.countReady(), 2);
  accounts.of(account).begin(0);
  assert.equal(queue.countReady(), 1);
  accounts.of(account).begin(0);
  assert.equal(queue.countReady(), 0);
});

test('one eighth of a pool is reserved, at least one connection, and none of fewer than four', () => {
  const sizes = [1, 3, 4, 8, 15, 16, 40, 100];
  assert.deepEqual(sizes.map(reservedRoom), [0, 0, 1, 1, 1, 2, 5, 12]);
});

test('a client counts for a minute after its last request, and for as long as anything of it runs or waits', () => {
  const { accounts } = create();
  const web = createAccount({ name: 'web', share: 3 });
  const report = createAccount({ name: 'report' });
  const shareOfWeb = () => accounts.shareOf(accounts.of(web), 8);
  accounts.arrive(web, 0);
  assert.deepEqual([accounts.isShared, shareOfWeb()], [false, 8]);
  const own = accounts.arrive(report, 0);
  assert.deepEqual([accounts.isShared, shareOfWeb()], [true, 6]);
  own.begin(0);
  accounts.arrive(web, seenMs + 1);
  accounts.sweep(seenMs + 1);
  assert.ok(accounts.isShared, 'a client that has a session was forgotten');
  own.end(0, seenMs + 1);
  accounts.sweep(2 * seenMs + 1);
  assert.ok(accounts.isShared, 'a client was forgotten within a minute');
  accounts.arrive(web, 2 * seenMs + 2);
  accounts.sweep(2 * seenMs + 2);
  assert.deepEqual([accounts.isShared, shareOfWeb()], [false, 8]);
});

test('a share that SIGHUP has changed counts within seconds, and is never less than one connection', () => {
  const { accounts } = create();
  const web = createAccount({ name: 'web' });
  const report = createAccount({ name: 'report' });
  for (const account of [web, report]) accounts.arrive(account, 0);
  web.client = { ...web.client, share: 15 };
  accounts.sweep(0);
  const shares = [web, report].map((account) => accounts.shareOf(accounts.of(account), 8));
  assert.deepEqual(shares, [7.5, 1]);
});

test('the time of a client is that of all its pools, of what runs too', () => {
  const account = createAccount();
  const [one, other] = [1, 2].map(() => new PoolAccounts(8, 5_000));
  const at = (accounts: PoolAccounts | undefined) => accounts?.arrive(account, 0) as PoolAccount;
  at(one).begin(1_000);
  at(other).begin(2_000);
  at(one).end(1_000, 4_000);
  at(other).add(500);
  assert.deepEqual(account.observations(5_000), {
    client: 'default',
    heldSeconds: 6.5,
    inFlight: 1,
    waiting: 0,
  });
});

test('a client that returns starts level with those that wait, and has saved up no time', () => {
  const accounts = new PoolAccounts(16, 5_000);
  const busy = createAccount({ name: 'busy' });
  const quiet = createAccount({ name: 'quiet' });
  accounts.noteWait(true, 0);
  const own = accounts.arrive(quiet, 0);
  accounts.arrive(busy, 0).begin(0);
  assert.equal(accounts.costOf(own, 0), 0);
  accounts.raiseLevel(accounts.costOf(accounts.of(busy), 1000));
  accounts.arrive(quiet, 1000);
  assert.equal(accounts.costOf(own, 1000), 1000);
});

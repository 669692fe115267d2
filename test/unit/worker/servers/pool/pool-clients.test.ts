// The part of each client in a pool: some connections are reserved for clients below their share, no client has more in flight than it may,
// and the estimates of a client follow its own backlog.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import {
  ReservedSessions,
  type Reserving,
} from '../../../../../src/worker/servers/pool/reserved-sessions.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

/** A pool, and requests whose ends are noted. */
function create(size: number, queue = 1_000) {
  const open = async () => createScriptedSession(createScriptedConnection());
  const settings = { size, queue, maxWaitMs: 60_000, open, log: silentLog };
  const pool = new Pool(
    { ...settings, onOpened: () => {}, mayLend: null },
    new Reachability(silentLog, { address: 'db', account: 'app' }),
  );
  const held = new Map<Account, Session[]>();
  const refused: string[] = [];
  const ask = (account: Account, count = 1, longestMs = 60_000) => {
    for (let n = 0; n < count; n += 1) {
      pool.request({
        waitLimit: createLimit({ account, since: performance.now(), longestMs }),
        granted: (session) => held.set(account, [...(held.get(account) ?? []), session]),
        refused: (reason) => void refused.push(`${account.client.name}: ${reason}`),
      });
    }
  };
  const countOf = (account: Account) => held.get(account)?.length ?? 0;
  const finish = (account: Account) => {
    const session = held.get(account)?.shift();
    assert.ok(session !== undefined);
    pool.release(session, 'clean');
  };
  return { pool, refused, ask, countOf, finish };
}

async function turns(): Promise<void> {
  for (let n = 0; n < 30; n += 1) await turn();
}

test('a client that is alone gets all connections; while there is another one, an eighth is left for that', async () => {
  const { pool, ask, countOf, finish } = create(16);
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  ask(loud, 100);
  await turns();
  assert.equal(countOf(loud), 16);
  ask(quiet);
  finish(loud);
  assert.deepEqual([countOf(loud), countOf(quiet)], [15, 1]);
  finish(quiet);
  finish(loud);
  // Two are free now, and the loud client holds more than its share.
  assert.deepEqual([countOf(loud), pool.observations().idle], [14, 2]);
  ask(quiet, 2);
  assert.deepEqual([countOf(loud), countOf(quiet)], [14, 2], 'the quiet client had to wait');
  finish(quiet);
  assert.deepEqual([countOf(loud), pool.observations().idle], [14, 1]);
  void pool.close();
});

test('a client at max_in_flight waits beside idle connections, also for those of its share', async () => {
  const { pool, ask, countOf, finish } = create(4);
  const bounded = createAccount({ name: 'bounded', maxInFlight: 1 });
  const other = createAccount({ name: 'other' });
  ask(other, 2);
  await turns();
  for (let n = 0; n < 2; n += 1) finish(other);
  ask(bounded, 2);
  await turns();
  assert.deepEqual([countOf(bounded), pool.admission.waiting], [1, 1]);
  assert.ok(pool.observations().idle > 0, 'a connection was free');
  finish(bounded);
  await turns();
  assert.deepEqual([countOf(bounded), pool.admission.waiting], [1, 0]);
  void pool.close();
});

test('reserved connections are open before they are needed', async () => {
  const { pool, ask, countOf } = create(16);
  const loud = createAccount({ name: 'loud' });
  pool.accounts.arrive(createAccount({ name: 'quiet' }), performance.now());
  ask(loud, 100);
  await turns();
  assert.deepEqual([countOf(loud), pool.observations().idle], [14, 2]);
  void pool.close();
});

test('the reserved connections are given to all once the other client was not seen for a minute', async () => {
  const { pool, ask, countOf } = create(8);
  const loud = createAccount({ name: 'loud' });
  const longAgo = performance.now() - 61_000;
  pool.accounts.arrive(createAccount({ name: 'quiet' }), longAgo);
  ask(loud, 10);
  await turns();
  assert.equal(countOf(loud), 7);
  pool.accounts.sweep(performance.now());
  // Any event would do; the pool looks again by itself while requests wait.
  ask(loud);
  while (countOf(loud) < 8) await turn();
  void pool.close();
});

test('a stop lends the reserved connections too', async () => {
  const { pool, ask, countOf } = create(8);
  const loud = createAccount({ name: 'loud' });
  pool.accounts.arrive(createAccount({ name: 'quiet' }), performance.now());
  ask(loud, 10);
  await turns();
  pool.keepNoneIdle();
  assert.equal(countOf(loud), 8);
  void pool.close();
});

test('at max_in_flight the requests of a client wait, over all pools, and others pass them', async () => {
  const one = create(8);
  const other = create(8);
  const limited = createAccount({ name: 'limited', maxInFlight: 2 });
  const free = createAccount({ name: 'free' });
  one.ask(limited, 4);
  await turns();
  assert.deepEqual([one.countOf(limited), one.pool.open], [2, 2], 'more was opened than is used');
  other.ask(limited);
  await turns();
  one.ask(free);
  await turns();
  assert.deepEqual([other.countOf(limited), one.countOf(free)], [0, 1]);
  assert.deepEqual([limited.inFlight, limited.waiting], [2, 3]);
  for (let n = 0; n < 3; n += 1) one.finish(limited);
  await turns();
  assert.deepEqual(
    [one.countOf(limited), other.countOf(limited)].reduce((a, b) => a + b),
    2,
  );
  assert.deepEqual([limited.inFlight, limited.waiting], [2, 0]);
  for (const { pool } of [one, other]) void pool.close();
});

test('beyond its own queue a client is busy, and the section’s queue is not full', async () => {
  const { pool, refused, ask, countOf } = create(1);
  const small = createAccount({ name: 'small', queue: 2 });
  const other = createAccount({ name: 'other' });
  ask(other);
  await turns();
  ask(small, 4);
  ask(other, 4);
  assert.deepEqual(refused, ['small: client busy', 'small: client busy']);
  assert.deepEqual([countOf(other), small.waiting, pool.admission.waiting], [1, 2, 6]);
  void pool.close();
});

test('a full queue rejects the newest request of the client with the longest queue, not the newcomer', async () => {
  const { pool, refused, ask } = create(1, 10);
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  ask(loud, 1);
  await turns();
  ask(loud, 11);
  ask(quiet, 2);
  assert.deepEqual(refused, ['loud: queue full', 'loud: queue full', 'loud: queue full']);
  assert.deepEqual([loud.waiting, quiet.waiting], [8, 2]);
  void pool.close();
});

test('the smaller max_wait of section and client bounds the wait', async () => {
  const { pool, refused, ask } = create(1);
  const hasty = createAccount({ name: 'hasty', maxWaitMs: 1_000 });
  const other = createAccount({ name: 'other' });
  ask(other);
  await turns();
  ask(hasty);
  ask(other);
  const now = performance.now();
  pool.refuseLate(now + 900);
  assert.deepEqual(refused, []);
  pool.refuseLate(now + 1_001);
  assert.deepEqual(refused, ['hasty: waited too long']);
  void pool.close();
});

test('Retry-After follows the client’s own backlog, and has up to a quarter more', async () => {
  const { pool, ask } = create(1);
  const loud = createAccount({ name: 'loud' });
  ask(loud);
  await turns();
  ask(loud, 100);
  // Nothing of it was served in the last seconds: the longest estimate.
  assert.equal(
    pool.retryAfterSeconds(loud, () => 0),
    24,
  );
  assert.equal(
    pool.retryAfterSeconds(loud, () => 0.999),
    30,
  );
  assert.equal(
    pool.retryAfterSeconds(createAccount({ name: 'quiet' }), () => 0.999),
    1,
  );
  void pool.close();
});

/** Requests that reserve sessions in a pool of that size. */
function createReserved(size: number) {
  const { pool, ask, finish } = create(size);
  const reserved = new ReservedSessions(pool);
  const log: string[] = [];
  const acquire = (account: Account, count: number) => {
    for (let n = 0; n < count; n += 1) {
      const { name } = account.client;
      const request: Reserving = {
        waitLimit: createLimit({ account, since: performance.now() }),
        reserved: () => void log.push(name),
        refused: (reason) => void log.push(`${name}: ${reason}`),
      };
      reserved.acquire(request);
    }
  };
  return { pool, reserved, log, acquire, ask, finish };
}

test('a client that holds transactions leaves an eighth of their room to others', () => {
  const { pool, reserved, log, acquire } = createReserved(16);
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  pool.accounts.arrive(quiet, performance.now());
  acquire(loud, 20);
  assert.deepEqual(
    log,
    Array.from({ length: 7 }, () => 'loud'),
  );
  acquire(quiet, 1);
  assert.deepEqual(log.slice(7), ['quiet'], 'the quiet client had to wait');
  reserved.release(quiet);
  assert.deepEqual([log.length, reserved.count], [8, 7]);
  acquire(quiet, 1);
  reserved.release(loud);
  assert.deepEqual(log.slice(8), ['quiet', 'loud'], 'more was kept free than the eighth');
  reserved.close();
  void pool.close();
});

test('a client below its share is the next one to begin a transaction', () => {
  const { pool, reserved, log, acquire } = createReserved(6);
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  acquire(loud, 5);
  acquire(quiet, 2);
  assert.deepEqual(log, ['loud', 'loud', 'loud']);
  reserved.release(loud);
  reserved.release(loud);
  assert.deepEqual(log.slice(3), ['quiet', 'loud']);
  reserved.close();
  void pool.close();
});

test('a client at max_in_flight takes no places of transactions that it could not use', async () => {
  const { pool, reserved, log, acquire, ask, finish } = createReserved(8);
  const small = createAccount({ name: 'small', maxInFlight: 2 });
  ask(small, 2);
  await turns();
  acquire(small, 4);
  assert.deepEqual([log, reserved.count], [[], 0]);
  acquire(createAccount({ name: 'other' }), 2);
  assert.deepEqual(log.splice(0), ['other', 'other']);
  // One more may run, so one has a place. It has its session before the next one may have one.
  finish(small);
  assert.deepEqual(log, ['small']);
  reserved.noteSession(small);
  finish(small);
  assert.deepEqual(log, ['small', 'small']);
  reserved.close();
  void pool.close();
});

test('a BEGIN of a client at max_in_flight is not passed by later requests for ever', async () => {
  const { pool, reserved, log, acquire, ask, finish } = createReserved(4);
  const small = createAccount({ name: 'small', maxInFlight: 1 });
  const other = createAccount({ name: 'other' });
  // Its session is idle afterwards.
  ask(other);
  ask(small);
  await turns();
  finish(other);
  ask(small);
  acquire(small, 1);
  ask(small);
  assert.deepEqual(log, []);
  finish(small);
  assert.deepEqual(log, ['small'], 'its place is that behind the request before it');
  reserved.close();
  void pool.close();
});

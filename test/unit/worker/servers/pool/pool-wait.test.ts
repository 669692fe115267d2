// How long requests wait for a session: behind others up to a part of their deadline, for a new connection up to max_wait.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

const maxWaitMs = 60_000;

function openNever(signal: AbortSignal): Promise<Session> {
  return new Promise((_opened, reject) => {
    signal.addEventListener('abort', () => reject(new Error('it was given up')));
  });
}

/** A pool of one session, and requests that note their outcome. */
function create(open: (signal: AbortSignal) => Promise<Session>) {
  const reachability = new Reachability(silentLog, { address: 'db', account: 'app' });
  const pool = new Pool(
    {
      size: 1,
      queue: 10,
      maxWaitMs,
      open,
      onOpened: () => {},
      mayLend: null,
      log: silentLog,
    },
    reachability,
  );
  const reported: string[] = [];
  const account = createAccount();
  const since = performance.now();
  const ask = (name: string, longestMs: number) => {
    const waiter: Waiter = {
      waitLimit: createLimit({ account, since, longestMs }),
      granted: () => void reported.push(`${name}: granted`),
      refused: (reason) => void reported.push(`${name}: ${reason}`),
    };
    pool.request(waiter);
  };
  return { pool, reachability, reported, ask, since };
}

test('a request for which a connection is being opened waits for max_wait, those behind it for their own part of it', () => {
  const { pool, reported, ask, since } = create(openNever);
  ask('first', 10_000);
  ask('second', 10_000);
  ask('third', 20_000);
  pool.refuseLate(since + 9_999);
  assert.deepEqual(reported, []);
  pool.refuseLate(since + 10_000);
  assert.deepEqual(reported, ['second: waited too long']);
  pool.refuseLate(since + maxWaitMs);
  assert.deepEqual(reported.slice(1), ['first: waited too long', 'third: waited too long']);
  assert.equal(pool.admission.waiting, 0);
  void pool.close();
});

test('a request that waits for an attempt after a failed one is refused with the reason of that failure', async () => {
  let attempts = 0;
  const { pool, reported, ask, since } = create((signal) => {
    attempts += 1;
    if (attempts > 1) return openNever(signal);
    const fields = { code: 'EAI_AGAIN', syscall: 'getaddrinfo' };
    return Promise.reject(Object.assign(new Error('getaddrinfo EAI_AGAIN db'), fields));
  });
  ask('first', 10_000);
  await turn();
  assert.deepEqual(reported, ['first: name unresolved']);
  void pool.revive();
  ask('second', 10_000);
  ask('third', 10_000);
  pool.refuseLate(since + maxWaitMs);
  assert.deepEqual(reported.slice(1), ['second: name unresolved', 'third: name unresolved']);
  await pool.close();
});

test('a request that has waited elsewhere for as long as it may gets an idle session, or is rejected at once', async () => {
  const { pool, reported, ask } = create(async () =>
    createScriptedSession(createScriptedConnection()),
  );
  ask('first', 10_000);
  for (let n = 0; n < 5; n += 1) await turn();
  ask('late', 0);
  assert.deepEqual(reported, ['first: granted', 'late: waited too long']);
  void pool.close();
});

test('a request that waits for a connection which a partition has cut off gets another one when the server is back', async () => {
  let attempts = 0;
  const { pool, reachability, reported, ask } = create((signal) => {
    attempts += 1;
    return attempts === 1
      ? openNever(signal)
      : Promise.resolve(createScriptedSession(createScriptedConnection(() => 'ok')));
  });
  ask('first', 10_000);
  reachability.returned();
  await turn();
  assert.deepEqual(reported, ['first: granted']);
  const { connectsOk, connectsFailed } = pool.observations();
  assert.deepEqual([attempts, connectsOk, connectsFailed], [2, 1, 0]);
  void pool.close();
});

test('a connection that opens after its attempt was given up is closed', async () => {
  const late = createScriptedSession(createScriptedConnection(() => 'ok'));
  let open: (session: Session) => void = () => {};
  const { pool, reachability, reported, ask } = create(
    () =>
      new Promise((resolve) => {
        open = resolve;
      }),
  );
  ask('first', 10_000);
  const openLate = open;
  reachability.returned();
  openLate(late);
  await turn();
  assert.deepEqual(reported, []);
  assert.equal(late.connection.isLost, true);
  void pool.close();
});

test('a pool that closes while the server comes back waits for its attempts, and makes no new ones', async () => {
  let attempts = 0;
  const { pool, reachability, reported, ask } = create((signal) => {
    attempts += 1;
    return openNever(signal);
  });
  ask('first', 10_000);
  const closed = pool.close();
  reachability.returned();
  await closed;
  assert.deepEqual([attempts, reported], [1, ['first: stopping']]);
});

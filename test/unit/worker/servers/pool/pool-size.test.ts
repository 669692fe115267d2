// The pool never opens more sessions than it may, at whatever moment they are requested.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Log } from '../../../../../src/shared/process/log.ts';
import { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

const ignore = () => {};
const log: Log = { error: ignore, warn: ignore, info: ignore, debug: null, reopen: ignore };

function createPool(size: number, onOpened: (pool: Pool) => void): Pool {
  const pool = new Pool(
    {
      size,
      queue: 10,
      maxWaitMs: 5_000,
      open: async () =>
        ({ connection: { isLost: false, watch: ignore }, holder: null }) as unknown as Session,
      onOpened: () => onOpened(pool),
      mayLend: null,
      log,
    },
    new Reachability(log, { address: 'nowhere', account: 'app' }),
  );
  return pool;
}

test('a request for a session while another one is being announced as opened does not exceed the pool’s size', async () => {
  const granted: Session[] = [];
  const waiter: Waiter = {
    waitLimit: createLimit(),
    granted: (session) => void granted.push(session),
    refused: ignore,
  };
  let isAsked = false;
  const pool = createPool(1, () => {
    // The catalogue does the same if the server turns out to be another one.
    if (!isAsked) pool.request(waiter);
    isAsked = true;
  });
  pool.request(waiter);
  for (let n = 0; n < 5; n += 1) await turn();
  assert.equal(granted.length, 1);
  assert.equal(pool.open, 1);
  pool.release(granted[0] as Session, 'clean');
  assert.equal(granted.length, 2);
  assert.equal(granted[0], granted[1]);
});

test('a request that may run because one of its client has ended is granted that session, and opens none', async () => {
  for (const [size, verdict] of [
    [1, 'clean'],
    [4, 'clean'],
    [1, 'broken'],
  ] as const) {
    const granted: Session[] = [];
    const account = createAccount({ maxInFlight: 1 });
    let opened = 0;
    const pool = createPool(size, () => {
      opened += 1;
    });
    for (let n = 0; n < 3; n += 1) {
      pool.request({
        waitLimit: createLimit({ account, since: performance.now() }),
        granted: (session) => void granted.push(session),
        refused: ignore,
      });
    }
    for (let at = 0; at < 3; at += 1) {
      for (let n = 0; n < 5; n += 1) await turn();
      const session = granted[at] as Session;
      assert.equal(granted.length, at + 1);
      assert.equal(pool.open, 1);
      if (verdict === 'broken')
        Object.assign(session.connection, { isLost: true, destroy: ignore });
      pool.release(session, verdict);
    }
    assert.equal(opened, verdict === 'broken' ? 3 : 1);
  }
});

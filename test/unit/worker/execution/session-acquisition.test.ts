// How a session is made ready before a statement is sent on it, and when another one is tried. The sessions are fakes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ping } from '../../../../src/shared/mysql/commands.ts';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';
import {
  makeReady,
  needsPreparation,
  SessionAcquisition,
  type SessionUser,
} from '../../../../src/worker/execution/session-acquisition.ts';
import type { RequestConsistency } from '../../../../src/worker/servers/consistency/consistency.ts';
import type { Pool } from '../../../../src/worker/servers/pool/pool.ts';
import type { Waiter } from '../../../../src/worker/servers/pool/queue.ts';
import { type Session, staleAfterMs } from '../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../support/scripted-connection.ts';
import { createLimit } from '../../support/wait-limit.ts';

const refreshed: Session[] = [];
const proveAlive = ({ connection }: Session) => ping(connection);
const pool = {
  refresh: async (session: Session) => {
    refreshed.push(session);
  },
  proveAlive,
} as unknown as Pool;
const longAgo = () => performance.now() - staleAfterMs - 1;

test('a session that was idle is pinged before anything is sent on it; one that has just answered is not', async () => {
  for (const [aliveAt, asked] of [
    [longAgo(), ['ping']],
    [Number.POSITIVE_INFINITY, []],
  ] as const) {
    const connection = createScriptedConnection();
    const session = createScriptedSession(connection, { aliveAt });
    assert.equal(needsPreparation(session, false, false, performance.now()), asked.length > 0);
    await makeReady(pool, session, false, false);
    assert.deepEqual(connection.sent, asked);
  }
});

test('a session that was idle and is gone is not used', async () => {
  const session = createScriptedSession(
    createScriptedConnection(() => 'lost'),
    { aliveAt: longAgo() },
  );
  await assert.rejects(makeReady(pool, session, false, false));
});

test('a statement that may read what was left in a session gets a fresh one', async () => {
  const session = createScriptedSession(createScriptedConnection(), { isFresh: false });
  assert.equal(needsPreparation(session, false, true, performance.now()), true);
  await makeReady(pool, session, false, true);
  assert.deepEqual(refreshed, [session]);
});

test('a statement under READ ONLY is preceded by a READ ONLY transaction', async () => {
  const connection = createScriptedConnection();
  const session = createScriptedSession(connection);
  assert.equal(needsPreparation(session, true, false, performance.now()), true);
  await makeReady(pool, session, true, false);
  assert.deepEqual(connection.sent, ['START TRANSACTION READ ONLY']);
  assert.equal(session.isFresh, false);
});

async function turns(): Promise<void> {
  for (let n = 0; n < 10; n += 1) await turn();
}

/** An acquisition whose pool grants these sessions one after the other, and its result. */
function acquire(
  sessions: readonly Session[],
  check: SessionUser['check'] = null,
  differences: Partial<SessionUser> = {},
  consistency: RequestConsistency | null = null,
) {
  const log: string[] = [];
  const left = [...sessions];
  const source = {
    request: (waiter: Waiter) => {
      const session = left.shift();
      if (session !== undefined) waiter.granted(session, null);
    },
    release: (_session: Session, verdict: string) => log.push(`released ${verdict}`),
    refresh: async () => {},
    proveAlive,
  } as unknown as Pool;
  const user: SessionUser = {
    waitLimit: createLimit(),
    isRead: true,
    isReadOnly: false,
    needsFreshSession: () => false,
    check,
    acquired: (session) => void log.push(`acquired ${sessions.indexOf(session)}`),
    denied: (end) => void log.push(`denied ${'reason' in end ? end.reason : end.kind}`),
    ...differences,
  };
  const acquisition = new SessionAcquisition(source, consistency, user, new RunTimes());
  acquisition.start();
  return { acquisition, log };
}

const lostWhileIdle = () =>
  createScriptedSession(
    createScriptedConnection(() => 'lost'),
    { aliveAt: longAgo() },
  );
const ready = () => createScriptedSession(createScriptedConnection());

test('a session that is lost before anything was sent is replaced by another one, once', async () => {
  const found = acquire([lostWhileIdle(), ready()]);
  await turns();
  assert.deepEqual(found.log, ['released broken', 'acquired 1']);
  const twice = acquire([lostWhileIdle(), lostWhileIdle(), ready()]);
  await turns();
  assert.deepEqual(twice.log, ['released broken', 'released broken', 'denied server unreachable']);
});

test('a session that is lost twice after it was handed out is not replaced again', async () => {
  const { acquisition, log } = acquire([ready(), ready(), ready()]);
  acquisition.retry(ready());
  acquisition.retry(ready());
  assert.deepEqual(log, [
    'acquired 0',
    'released broken',
    'acquired 1',
    'released broken',
    'denied server unreachable',
  ]);
});

test('a check that denies the session sends nothing, and the session is reset', async () => {
  const denied = { kind: 'key refused', reason: 'no table' } as const;
  const { log } = acquire([ready()], async () => denied);
  await turns();
  assert.deepEqual(log, ['denied no table', 'released unclean']);
});

test('a session that is made ready for a request that has stopped goes back to the pool', async () => {
  const { acquisition, log } = acquire([ready()], async () => null);
  acquisition.stop();
  await turns();
  assert.deepEqual(log, ['released unclean']);
});

test('an exception while a session is granted ends that request alone, and the session is not lent again', () => {
  const needsFreshSession = () => {
    throw new Error('a mistake');
  };
  const { log } = acquire(
    [createScriptedSession(createScriptedConnection(), { isFresh: false })],
    null,
    {
      needsFreshSession,
    },
  );
  assert.deepEqual(log, ['denied faulted', 'released broken']);
});

test('a request that stops while its session is pinged sends nothing more on it', async () => {
  const session = createScriptedSession(createScriptedConnection(), { aliveAt: longAgo() });
  const asked: string[] = [];
  const check = async () => {
    asked.push('check');
    return null;
  };
  const consistency = {
    mustWait: () => true,
    waitForPosition: async () => void asked.push('position'),
  } as unknown as RequestConsistency;
  const { acquisition, log } = acquire([session], check, {}, consistency);
  acquisition.stop();
  await turns();
  assert.deepEqual([asked, log], [[], ['released clean']]);
});

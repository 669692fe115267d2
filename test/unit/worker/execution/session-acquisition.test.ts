// What a session is asked before a statement is sent on it.
// Must not know a server: the sessions are made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  makeReady,
  needsPreparation,
} from '../../../../src/worker/execution/session-acquisition.ts';
import type { Pool } from '../../../../src/worker/servers/pool/pool.ts';
import { type Session, staleAfterMs } from '../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../support/scripted-connection.ts';

const refreshed: Session[] = [];
const pool = {
  refresh: async (session: Session) => {
    refreshed.push(session);
  },
} as unknown as Pool;
const longAgo = () => performance.now() - staleAfterMs - 1;

test('a session that lay idle is asked whether it is there before anything is sent on it; one that was just heard is not', async () => {
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

test('a session that lay idle and is gone is not used', async () => {
  const session = createScriptedSession(
    createScriptedConnection(() => 'lost'),
    { aliveAt: longAgo() },
  );
  await assert.rejects(makeReady(pool, session, false, false));
});

test('a statement that reads what was left in a session gets a fresh one', async () => {
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

// An attempt ends the session of the one before only on the same server, and only if that was not restarted: then connection ids repeat.
// Two servers with the same connection id are made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIdempotencyTable } from '../../../../../src/shared/database/idempotency-table.ts';
import type { LostSession, ServerIdentity } from '../../../../../src/shared/mysql/identity.ts';
import { KeyAttempt, KeyStore } from '../../../../../src/worker/execution/idempotency/key-store.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
  silentLog,
} from '../../../support/scripted-connection.ts';

const own: ServerIdentity = { name: 'db1:3306/1', startedAt: 1_000 };
const keys = new KeyStore(parseIdempotencyTable('request_keys', 'd'), silentLog);

/** The statements by which an attempt ends the session that the one before has lost. */
async function sentToEnd(predecessor: LostSession | null, answer: ScriptedAnswer = 'ok') {
  const connection = createScriptedConnection(() => answer);
  const events = { commitTimeoutMs: 0, isRecovering: true };
  const attempt = new KeyAttempt(keys, { id: 'aa', request: 'bb' }, predecessor, events);
  await attempt.endPredecessor(createScriptedSession(connection, { identity: own }));
  return connection.sent;
}

test('an attempt ends the session that the one before has lost on the same server', async () => {
  assert.deepEqual(await sentToEnd({ threadId: 41, identity: own }), ['KILL 41']);
  const gone = await sentToEnd({ threadId: 41, identity: own }, { errno: 1094 });
  assert.deepEqual(gone, ['KILL 41'], 'it had ended by itself');
});

test('an attempt ends nothing on another server, nor in another run of the same server', async () => {
  for (const identity of [
    { ...own, name: 'db2:3306/2' },
    { ...own, startedAt: 940 },
  ]) {
    assert.deepEqual(await sentToEnd({ threadId: 41, identity }), []);
  }
  assert.deepEqual(await sentToEnd(null), []);
});

// The proof that a ROLLBACK on a session gives, by each answer of the server. After an interruption nothing is sent. Answers and moments
// are invented: through the gateway they come by chance.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ofTransaction, SessionLease } from '../../../../src/worker/execution/session-lease.ts';
import type { Control } from '../../../../src/worker/servers/pool/control.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
} from '../../support/scripted-connection.ts';

const control = { kill: async () => true, noteRunningOn: () => {} } as unknown as Control;
const autocommit = 2;
const warned = { status: autocommit, warnings: 1 };

function leaseOn(answer: (statement: string) => ScriptedAnswer) {
  const connection = createScriptedConnection(answer);
  const lease = new SessionLease(createScriptedSession(connection), control, () => {}, null);
  return { connection, lease };
}

/** The end of a transaction if these are the answers to ROLLBACK TO SAVEPOINT and ROLLBACK. */
async function undone(toSavepoint: ScriptedAnswer, rollback: ScriptedAnswer) {
  const { lease } = leaseOn((sql) => (sql === 'ROLLBACK' ? rollback : toSavepoint));
  return lease.rollBack('s');
}

test('a ROLLBACK proves that all is undone only if its savepoint existed and the server reports no warning', async () => {
  assert.equal(await undone('ok', 'ok'), 'rolled_back');
  assert.equal(await undone({ errno: 1305 }, 'ok'), 'no proof');
  assert.equal(await undone('ok', warned), 'partial');
  assert.equal(await undone(warned, 'ok'), 'partial');
  assert.equal(await undone({ errno: 1305 }, warned), 'partial');
});

test('a ROLLBACK that has no answer, or is refused, proves nothing, and its connection is not used again', async () => {
  assert.equal(await undone('ok', 'lost'), 'unknown');
  const { connection, lease } = leaseOn((sql) => (sql === 'ROLLBACK' ? { errno: 1158 } : 'ok'));
  assert.equal(await lease.rollBack(null), 'unknown');
  assert.equal(connection.isLost, true);
});

test('a COMMIT that is answered by rows is not done, and its connection is not used again', async () => {
  const { connection, lease } = leaseOn(() => ({ rows: [['1']] }));
  assert.deepEqual(await lease.ask('COMMIT', ofTransaction), { kind: 'lost' });
  assert.equal(connection.isLost, true);
});

test('only the ROLLBACK is sent on a session after an interruption', async () => {
  const { connection, lease } = leaseOn(() => 'ok');
  lease.interrupt();
  assert.deepEqual(await lease.ask('UPDATE t SET n = 1', ofTransaction), {
    kind: 'answered',
    error: null,
  });
  assert.deepEqual(connection.sent, []);
  assert.equal(await lease.rollBack(null), 'rolled_back');
  lease.end();
  assert.deepEqual(connection.sent, ['ROLLBACK']);
});

test('a session is clean only if the flags of the last answer show that no transaction is open', async () => {
  const [inTransaction, settled] = [3, autocommit];
  for (const [status, isClean] of [
    [settled, true],
    [inTransaction, false],
    [0, false],
  ] as const) {
    const { lease } = leaseOn(() => ({ status, warnings: 0 }));
    await lease.ask('COMMIT', ofTransaction);
    assert.equal(lease.isClean, isClean, `${status}`);
  }
});

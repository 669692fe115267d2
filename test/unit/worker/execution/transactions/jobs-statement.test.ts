// The meaning of a refused statement for its open transaction, by the server's report after it. A test cannot get each report from a real
// server, so the session's lease is a fake.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../../src/shared/sql/analyse.ts';
import type { RunEnd } from '../../../../../src/worker/execution/execution.ts';
import { RunTimes } from '../../../../../src/worker/execution/run-times.ts';
import type { LeaseSink, SessionLease } from '../../../../../src/worker/execution/session-lease.ts';
import { noEffects } from '../../../../../src/worker/execution/statement-effects.ts';
import type { JobTools } from '../../../../../src/worker/execution/transactions/jobs.ts';
import { StatementJob } from '../../../../../src/worker/execution/transactions/jobs.ts';
import type { Doubt } from '../../../../../src/worker/execution/transactions/open-transaction.ts';
import { showWarnings } from '../../../../../src/worker/execution/warnings.ts';
import type { Statement } from '../../../../../src/worker/execution/work.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../../support/scripted-connection.ts';

const [autocommit, inTransaction] = [2, 3];

/** The outcome if the server refuses with this error, and then reports this of the transaction. */
async function refused(
  errno: number,
  { sql = 'update t set n = 1', status = autocommit, hasLeft = false, mayBeAnother = false } = {},
) {
  const connection = createScriptedConnection(() => ({ status, warnings: 0 }));
  const lease = {
    session: createScriptedSession(connection),
    isLost: false,
    ask: async () => ({
      kind: 'answered',
      error: { errno, sqlState: 'HY000', message: 'refused' },
    }),
    rollBack: async () => 'rolled_back',
    hasLeftSomething: async () => hasLeft,
  } as unknown as SessionLease;
  const job = new StatementJob(
    { sql, effects: noEffects, analysis: analyse(sql) } as Statement,
    false,
  );
  const { end, ended } = await job.perform({
    lease,
    stopReason: null,
    mayBeAnother,
  } as unknown as JobTools);
  return [outcomeOf(end), ended];
}

function outcomeOf(end: RunEnd): string | null {
  return end.kind === 'answered'
    ? end.failure?.isAlone === false
      ? end.failure.outcome
      : null
    : end.kind;
}

test('a refused statement that leaves its transaction open does not report its end', async () => {
  assert.deepEqual(await refused(1062, { status: inTransaction }), [null, null]);
});

test('a deadlock has rolled back all, unless the server warns of tables that it could not undo', async () => {
  assert.deepEqual(await refused(1213), ['rolled_back', 'ended']);
  assert.deepEqual(await refused(1213, { hasLeft: true }), ['partial', 'ended']);
  assert.deepEqual(await refused(1213, { sql: 'call p()' }), ['partial', 'ended']);
  assert.deepEqual(await refused(1213, { mayBeAnother: true }), ['unknown', 'ended']);
});

test('an error behind which the transaction is gone, without being one that undoes it, leaves a part', async () => {
  assert.deepEqual(await refused(1062), ['partial', 'ended']);
});

test('the calls of a statement are known from its analysis: its text is not read again', async () => {
  const connection = createScriptedConnection();
  const lease = {
    session: createScriptedSession(connection),
    isLost: false,
    ask: async () => ({ kind: 'lost' }),
  } as unknown as SessionLease;
  const effects = { sent: () => {}, ended: () => {}, confinedTo: null, isUndoable: () => false };
  const analysis = { statements: [{ isCall: true }] };
  // Its text would say otherwise.
  const statement = { sql: 'insert into t values (1)', effects, analysis };
  const doubts: Doubt[] = [];
  const tools = { lease, stopReason: null, doubt: async (doubt: Doubt) => void doubts.push(doubt) };
  await new StatementJob(statement as unknown as Statement, false).perform(
    tools as unknown as JobTools,
  );
  assert.deepEqual(doubts, [{ writes: null, isCall: true }]);
});

test('a connection that is lost while the warnings are awaited ends the transaction', async () => {
  const asked: string[] = [];
  const lease = {
    session: createScriptedSession(createScriptedConnection()),
    isLost: true,
    ask: async (sql: string, results: LeaseSink) => {
      asked.push(sql);
      if (sql === showWarnings) return { kind: 'lost' };
      results.ok(
        { affectedRows: 1, insertId: 0, status: inTransaction, warnings: 1, info: '' },
        false,
      );
      return { kind: 'answered', error: null };
    },
  } as unknown as SessionLease;
  const statement = { sql: 'update t set n = 1', effects: noEffects, showsWarnings: true };
  const listed: unknown[] = [];
  const sink = { ok: () => {}, listWarnings: (list: unknown) => listed.push(list) };
  const tools = { lease, sink, times: new RunTimes(), stopReason: null, doubt: async () => {} };
  const { ended } = await new StatementJob(statement as unknown as Statement, false).perform(
    tools as unknown as JobTools,
  );
  assert.deepEqual([asked, listed], [['update t set n = 1', showWarnings], [[]]]);
  assert.equal(ended, 'lost');
});

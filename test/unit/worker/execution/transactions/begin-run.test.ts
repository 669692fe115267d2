// The beginning of an open transaction with a session that throws. The pool and the session are fakes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  RunContext,
  RunEnd,
  RunEvents,
} from '../../../../../src/worker/execution/execution.ts';
import { RunTimes } from '../../../../../src/worker/execution/run-times.ts';
import { BeginRun } from '../../../../../src/worker/execution/transactions/begin-run.ts';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import type { Reserving } from '../../../../../src/worker/servers/pool/reserved-sessions.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../../support/scripted-connection.ts';

test('an exception ends the request, and gives back the session and its place', async () => {
  const connection = createScriptedConnection();
  const session = createScriptedSession(connection);
  Object.defineProperty(session, 'createQuery', {
    value: () => {
      throw new Error('a mistake');
    },
  });
  const calls: string[] = [];
  const context = {
    consistency: null,
    control: {},
    pool: {
      request: (waiter: Waiter) => waiter.granted(session, null),
      release: (_session: unknown, verdict: string) => calls.push(`session ${verdict}`),
    },
    reserved: {
      acquire: (request: Reserving) => request.reserved(),
      noteSession: () => {},
      release: () => calls.push('place'),
    },
  };
  const end = await new Promise<RunEnd>((resolve) => {
    const wish = { isolation: null, isReadOnly: false, hasSnapshot: false };
    new BeginRun(
      context as unknown as RunContext,
      { wish, after: null, idleMs: 1_000 },
      () => calls.push('begun'),
      { traceparent: null, runEnded: resolve } as unknown as RunEvents,
      new RunTimes(),
    ).start();
  });
  assert.deepEqual([end.kind, end.kind === 'faulted' && end.isSent], ['faulted', false]);
  assert.deepEqual([calls, connection.isLost], [['session broken', 'place'], true]);
});

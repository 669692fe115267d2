// A read that was cut short in the pipeline and ends on another session. The pool and the session are fakes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunEnd, RunEvents } from '../../../../src/worker/execution/execution.ts';
import { Run, type RunPlace } from '../../../../src/worker/execution/run.ts';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';
import { noEffects } from '../../../../src/worker/execution/statement-effects.ts';
import type { Statement } from '../../../../src/worker/execution/work.ts';
import type { Waiter } from '../../../../src/worker/servers/pool/queue.ts';
import {
  createScriptedConnection,
  createScriptedSession,
} from '../../support/scripted-connection.ts';

const read: Statement = {
  kind: 'statement',
  sql: 'SELECT 1',
  isRead: true,
  effects: noEffects,
  seesOneMoment: true,
  needsFreshSession: false,
  leavesSessionClean: true,
  isReadOnly: false,
  shape: null,
  rollbackOnError: false,
  asksServer: false,
  showsWarnings: false,
  coalescingKey: null,
  analysis: null,
};

/** A run whose session throws when a statement is sent on it. */
function createRun() {
  const ends: RunEnd[] = [];
  const released: string[] = [];
  const session = createScriptedSession(createScriptedConnection());
  session.createQuery = () => {
    throw new Error('a mistake');
  };
  const pool = {
    request: (waiter: Waiter) => waiter.granted(session, null),
    release: (_session: unknown, verdict: string) => released.push(verdict),
  };
  const context = { pool, pipeline: null, consistency: null };
  const events = {
    sink: { restart: () => true, totalBytes: 0 },
    traceparent: null,
    runEnded: (end: RunEnd) => ends.push(end),
  };
  const run = new Run(
    { context, coalescer: null } as unknown as RunPlace,
    read,
    null,
    events as unknown as RunEvents,
    new RunTimes(),
  );
  return { run, ends, released };
}

const isSentIn = ([end]: readonly RunEnd[]) => (end?.kind === 'faulted' ? end.isSent : end);

test('an exception before a read is sent is reported as not executed', () => {
  const { run, ends, released } = createRun();
  run.start();
  assert.deepEqual([isSentIn(ends), released], [false, ['broken']]);
});

test('a read that was written in the pipeline is not reported as not executed, even if an exception ends its second run', () => {
  const { run, ends, released } = createRun();
  run.pipelineWrote(performance.now(), null);
  run.pipelineExpelled();
  assert.deepEqual([isSentIn(ends), released], [true, ['broken']]);
});

// A statement that is stopped after its answer, while the questions behind it are open. The pool and the session are fakes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { RunContext, RunEnd } from '../../../../src/worker/execution/execution.ts';
import { RunTimes } from '../../../../src/worker/execution/run-times.ts';
import { SessionRun, type SessionRunOwner } from '../../../../src/worker/execution/session-run.ts';
import { noEffects } from '../../../../src/worker/execution/statement-effects.ts';
import type { StopReason } from '../../../../src/worker/execution/stop-reason.ts';
import { showWarnings } from '../../../../src/worker/execution/warnings.ts';
import type { Statement } from '../../../../src/worker/execution/work.ts';
import type { RequestConsistency } from '../../../../src/worker/servers/consistency/consistency.ts';
import type { Waiter } from '../../../../src/worker/servers/pool/queue.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
} from '../../support/scripted-connection.ts';

const update = 'update t set n = 1';
const positionQuery = 'select position';
const warned = { status: 2, warnings: 1 };
const unsent: RunEnd = { kind: 'not executed', reason: 'stopping' };

/** A run of the statement on a connection of its own. `onRelease` is called when the pool gets the session back. */
function createRun(
  answers: Readonly<Record<string, ScriptedAnswer>>,
  wish: Partial<Statement>,
  { asksPosition = false, onRelease = () => {} } = {},
) {
  const connection = createScriptedConnection((sql) => answers[sql] ?? 'silence');
  const session = createScriptedSession(connection);
  const ends: RunEnd[] = [];
  const lists: unknown[] = [];
  const context = {
    pool: {
      request: (waiter: Waiter) => waiter.granted(session, null),
      release: onRelease,
    },
    control: { kill: async () => true, noteRunningOn: () => {} },
    pipeline: null,
  };
  const owner = {
    waitLimit: { since: 0, longestMs: 1_000 },
    traceparent: null,
    resultBytes: 0,
    handOverPlace: () => null,
    sessionGranted: () => {},
    sessionRunEnded: (end: RunEnd) => ends.push(end),
    listWarnings: (list: unknown) => lists.push(list),
    noteSeen: () => null,
    ok: () => {},
  };
  const consistency = {
    mustWait: () => false,
    queryOn: () => ({ sql: positionQuery }),
    forget: () => {},
  };
  const statement = { sql: update, effects: noEffects, shape: null, ...wish };
  const run = new SessionRun(
    context as unknown as RunContext,
    statement as unknown as Statement,
    asksPosition ? (consistency as unknown as RequestConsistency) : null,
    owner as unknown as SessionRunOwner,
    new RunTimes(),
  );
  return { run, connection, ends, lists };
}

/** The ends and the lists of warnings if the statement is stopped once its answers have come. */
async function stopped(
  reason: StopReason,
  answers: Readonly<Record<string, ScriptedAnswer>>,
  asksPosition = false,
) {
  const wish = { showsWarnings: true };
  const { run, connection, ends, lists } = createRun(answers, wish, { asksPosition });
  run.start();
  for (let n = 0; n < 10; n += 1) await turn();
  assert.deepEqual(
    connection.sent,
    [update, showWarnings, positionQuery].slice(0, asksPosition ? 3 : 2),
  );
  run.stop(reason, unsent);
  return { ends, lists };
}

test('a write whose warnings alone are missing has succeeded, without their texts', async () => {
  assert.deepEqual(await stopped('deadline', { [update]: warned }), {
    ends: [{ kind: 'answered', failure: null, facts: null }],
    lists: [[]],
  });
});

test('a write that has failed, has no answer, or whose client does not read has not', async () => {
  for (const [reason, answer] of [
    ['deadline', { errno: 1062 }],
    ['deadline', 'silence'],
    ['stalled', warned],
  ] as const) {
    assert.deepEqual(await stopped(reason, { [update]: answer }), {
      ends: [{ kind: 'stopped', reason }],
      lists: [],
    });
  }
});

test('a write whose position is missing has not: the reply would lack its token', async () => {
  const answers = { [update]: warned, [showWarnings]: { rows: [['Warning', '1265', 'cut']] } };
  const { ends } = await stopped('deadline', answers, true);
  assert.deepEqual(ends, [{ kind: 'stopped', reason: 'deadline' }]);
});

test('a statement that is stopped during the ROLLBACK behind it sends nothing in a session that is released', async () => {
  const answers = {
    [update]: { errno: 1062 },
    'SHOW WARNINGS': { rows: [] },
    ROLLBACK: 'ok',
  } as const;
  let sentBefore: number | null = null;
  const onRelease = () => {
    sentBefore = connection.sent.length;
  };
  const wish = { rollbackOnError: true };
  const { run, connection, ends } = createRun(answers, wish, { onRelease });
  run.start();
  for (let n = 0; n < 20 && !connection.sent.includes('SHOW WARNINGS'); n += 1) await turn();
  run.stop('deadline', unsent);
  for (let n = 0; n < 20; n += 1) await turn();
  assert.deepEqual(ends, [{ kind: 'stopped', reason: 'deadline' }]);
  assert.equal(sentBefore, connection.sent.length, connection.sent.join('; '));
});

// A step of an open transaction: a COMMIT that was sent is never reported as undone, the next step has the connection for itself, and its
// token says no more than is known.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunEnd, RunEvents } from '../../../../../src/worker/execution/execution.ts';
import { RunTimes } from '../../../../../src/worker/execution/run-times.ts';
import type { TransactionEnd } from '../../../../../src/worker/execution/transaction-end.ts';
import type { Job, JobTools } from '../../../../../src/worker/execution/transactions/jobs.ts';
import type {
  OpenTransaction,
  Step,
} from '../../../../../src/worker/execution/transactions/open-transaction.ts';
import { StepRun } from '../../../../../src/worker/execution/transactions/step-run.ts';
import type { TokenResult } from '../../../../../src/worker/servers/consistency/consistency.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
} from '../../../support/scripted-connection.ts';

/** Runs a job that throws, and resolves to the reported end of the transaction. */
function endOf(before: (tools: JobTools) => void): Promise<TransactionEnd | null> {
  const connection = { isLost: false, destroy: () => {}, resume: () => {} };
  const session = { connection, aliveAt: performance.now() };
  const ends: RunEnd[] = [];
  const runEnded = (end: RunEnd) => ends.push(end);
  const events = { traceparent: null, runEnded } as unknown as RunEvents;
  return new Promise((resolve) => {
    const transaction = {
      context: { consistency: null, control: null },
      request: (turn: Step) => turn.granted(session as never),
      release: resolve,
    } as unknown as OpenTransaction;
    const job: Job = {
      kind: 'statement',
      seesOneMoment: true,
      perform: async (tools) => {
        before(tools);
        throw new Error('a mistake');
      },
      afterEnd: () => ({ kind: 'lost', outcome: 'unknown' }),
    };
    new StepRun(transaction, job, null, events, new RunTimes()).start();
  });
}

test('an exception ends the transaction; behind a COMMIT that was sent it is unknown how', async () => {
  assert.equal(await endOf(() => {}), 'lost');
  assert.equal(await endOf((tools) => tools.commitIsSent()), 'unknown');
});

/** A job on a session that was idle. Its server reports whether its transaction is still there. */
function turnAfterIdling(answer: ScriptedAnswer) {
  const connection = createScriptedConnection(() => answer);
  const session = createScriptedSession(connection, { aliveAt: performance.now() - 60_000 });
  return new Promise<[hasRun: boolean, TransactionEnd | null]>((resolve) => {
    let hasRun = false;
    const transaction = {
      context: { consistency: null, control: null },
      request: (turn: Step) => turn.granted(session),
      release: (ended: TransactionEnd | null) => resolve([hasRun, ended]),
    } as unknown as OpenTransaction;
    const job: Job = {
      kind: 'statement',
      seesOneMoment: true,
      perform: async () => {
        hasRun = true;
        return { end: { kind: 'answered', failure: null, facts: null }, ended: null };
      },
      afterEnd: () => ({ kind: 'transaction ended', outcome: 'not_executed' }),
    };
    const events = { traceparent: null, runEnded: () => {} } as unknown as RunEvents;
    new StepRun(transaction, job, null, events, new RunTimes()).start();
  });
}

test('on a session that was idle nothing runs before its server confirms that the transaction is still there', async () => {
  const [autocommit, inTransaction] = [2, 3];
  const open = { status: inTransaction, warnings: 0 };
  const over = { status: autocommit, warnings: 0 };
  assert.deepEqual(await turnAfterIdling(open), [true, null]);
  assert.deepEqual(await turnAfterIdling(over), [false, 'lost']);
  assert.deepEqual(await turnAfterIdling('lost'), [false, 'lost']);
});

test('the age of a transaction ends a statement that runs, but not a COMMIT that was sent', async () => {
  for (const [isCommitting, stopped] of [
    [false, 'deadline'],
    [true, null],
  ] as const) {
    const found = await new Promise((resolve) => {
      const connection = { isLost: false, destroy: () => {}, resume: () => {} };
      const transaction = {
        context: { consistency: null, control: null },
        request: (turn: Step) => turn.granted({ connection, aliveAt: performance.now() } as never),
        release: () => {},
      } as unknown as OpenTransaction;
      const ends: RunEnd[] = [];
      const events = { traceparent: null, runEnded: (end: RunEnd) => ends.push(end) };
      const job: Job = {
        kind: 'statement',
        seesOneMoment: true,
        perform: async (tools) => {
          if (isCommitting) tools.commitIsSent();
          turn.expire();
          resolve([tools.stopReason, ends.length]);
          return { end: { kind: 'answered', failure: null, facts: null }, ended: 'committed' };
        },
        afterEnd: () => ({ kind: 'lost', outcome: 'unknown' }),
      };
      const turn = new StepRun(
        transaction,
        job,
        null,
        events as unknown as RunEvents,
        new RunTimes(),
      );
      turn.start();
    });
    assert.deepEqual(found, [stopped, 0]);
  }
});

test('a reader that catches up after its step has ended does not resume the connection that the next step has paused', async () => {
  let isPaused = false;
  const setPaused = (to: boolean) => () => {
    isPaused = to;
  };
  const connection = { isLost: false, pause: setPaused(true), resume: setPaused(false) };
  let released = () => {};
  const transaction = {
    context: { consistency: null, control: null },
    request: (turn: Step) => turn.granted({ connection, aliveAt: performance.now() } as never),
    release: () => released(),
  } as unknown as OpenTransaction;
  const events = { traceparent: null, runEnded: () => {} } as unknown as RunEvents;
  const step = (perform: Job['perform']) => {
    const job = { kind: 'statement', seesOneMoment: true, perform } as Job;
    return new StepRun(transaction, job, null, events, new RunTimes());
  };
  const first = step(async () => ({
    end: { kind: 'answered', failure: null, facts: null },
    ended: null,
  }));
  await new Promise<void>((resolve) => {
    released = resolve;
    first.start();
  });
  const second = step(() => new Promise(() => {}));
  second.start();
  second.pause();
  first.resume();
  assert.equal(isPaused, true);
  second.resume();
  assert.equal(isPaused, false);
});

/** The client's token behind a COMMIT with this end: of its own, or of an earlier request. Null: none is reported. */
async function seenAt(
  end: TransactionEnd,
  isGranted: boolean,
  isStopped = false,
): Promise<TokenResult | null> {
  const bound: TokenResult = {
    token: { server: 'a', position: { kind: 'mariadb', events: new Map() } },
    missing: 'nothing',
    isVerified: true,
  };
  const connection = { isLost: false, resume: () => {} };
  const transaction = {
    context: { consistency: {}, control: null },
    request: (turn: Step) =>
      isGranted
        ? turn.granted({ connection, aliveAt: performance.now() } as never)
        : turn.isTooLate(end, 'nothing', {} as never),
    release: () => {},
    seenNow: async () => bound,
  } as unknown as OpenTransaction;
  const answered: RunEnd = { kind: 'answered', failure: null, facts: null };
  const job = {
    kind: 'commit',
    seesOneMoment: true,
    perform: async (tools: JobTools) => {
      tools.commitIsSent();
      if (isStopped) step?.stop('deadline');
      return { end: answered, ended: end };
    },
    afterEnd: () => answered,
  } as unknown as Job;
  let step: StepRun | null = null;
  return new Promise((resolve) => {
    let seen: TokenResult | null = null;
    const events = {
      traceparent: null,
      seen: (result: TokenResult) => {
        seen = result;
      },
      runEnded: () => resolve(seen),
    };
    step = new StepRun(transaction, job, null, events as unknown as RunEvents, new RunTimes());
    step.start();
  });
}

test('a COMMIT is verified by the position behind it, but not if it is unknown when or whether it took effect', async () => {
  assert.equal((await seenAt('committed', true))?.isVerified, true);
  assert.equal((await seenAt('unknown', true))?.isVerified, false);
  assert.equal((await seenAt('committed', true, true))?.isVerified, false);
  assert.equal((await seenAt('committed', false))?.isVerified, false);
  assert.equal((await seenAt('unknown', false))?.isVerified, false);
  assert.equal(await seenAt('idle', false), null);
});

test('if the queue behind a COMMIT is full, a further COMMIT is unknown, and a statement is not executed', () => {
  for (const [kind, isBehind, expected] of [
    ['commit', true, 'commit running'],
    ['rollback', true, 'commit running'],
    ['statement', true, 'not executed'],
    ['commit', false, 'not executed'],
  ] as const) {
    const ends: RunEnd[] = [];
    const transaction = {
      request: (turn: Step) => turn.refused('queue full'),
      hasCommitBefore: () => isBehind,
    } as unknown as OpenTransaction;
    const events = { traceparent: null, runEnded: (end: RunEnd) => ends.push(end) };
    const job = { kind, seesOneMoment: true } as Job;
    const turn = new StepRun(
      transaction,
      job,
      null,
      events as unknown as RunEvents,
      new RunTimes(),
    );
    turn.start();
    assert.deepEqual(
      ends.map((end) => end.kind),
      [expected],
    );
  }
});

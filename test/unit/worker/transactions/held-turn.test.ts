// A turn in a held transaction that ends in an exception: a COMMIT that was sent is never told as undone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunEnd } from '../../../../src/worker/execute/outcome.ts';
import type { RunEvents } from '../../../../src/worker/execute/run-events.ts';
import { RunTimes } from '../../../../src/worker/execute/run-times.ts';
import type {
  HeldTransaction,
  TransactionEnd,
  Turn,
} from '../../../../src/worker/transactions/held-transaction.ts';
import {
  HeldTurn,
  type Job,
  type JobTools,
} from '../../../../src/worker/transactions/held-turn.ts';

/** Has a job done that throws, and resolves to how the transaction was said to have ended. */
function endOf(before: (tools: JobTools) => void): Promise<TransactionEnd | null> {
  const connection = { isLost: false, destroy: () => {}, resume: () => {} };
  const session = { connection, aliveAt: performance.now() };
  const ends: RunEnd[] = [];
  const runEnded = (end: RunEnd) => ends.push(end);
  const events = { traceparent: null, runEnded } as unknown as RunEvents;
  return new Promise((resolve) => {
    const transaction = {
      context: { consistency: null, control: null },
      request: (turn: Turn) => turn.granted(session as never),
      release: resolve,
    } as unknown as HeldTransaction;
    const job: Job = {
      seesOneMoment: true,
      perform: async (tools) => {
        before(tools);
        throw new Error('a mistake');
      },
      afterEnd: () => ({ kind: 'lost', outcome: 'unknown' }),
    };
    new HeldTurn(transaction, job, null, events, new RunTimes()).start();
  });
}

test('an exception ends the transaction; behind a COMMIT that was sent it is unknown how', async () => {
  assert.equal(await endOf(() => {}), 'lost');
  assert.equal(await endOf((tools) => tools.commitIsSent()), 'unknown');
});

// A held transaction gives its session back to be reset, however it has ended.
// The pool resets a session by the verdict of its user: only a made-up pool can show that verdict.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RunContext, RunEnd } from '../../../../../src/worker/execution/execution.ts';
import type { Left, TransactionEnd } from '../../../../../src/worker/execution/transaction-end.ts';
import {
  OpenTransaction,
  type Step,
  type TransactionLimits,
} from '../../../../../src/worker/execution/transactions/open-transaction.ts';
import { pingEveryMs } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedAnswer,
  type ScriptedConnection,
} from '../../../support/scripted-connection.ts';
import { createLimit } from '../../../support/wait-limit.ts';

const done: RunEnd = { kind: 'answered', failure: null, facts: null };
const times = { idleMs: 60_000, totalMs: 60_000 };
const owner = createLimit();

/** How the session comes back, and how the transaction has ended, after something was done to it. */
async function givenBack(
  act: (transaction: OpenTransaction, connection: ScriptedConnection) => void,
): Promise<[string, TransactionEnd]> {
  const connection = createScriptedConnection();
  const session = createScriptedSession(connection);
  const verdicts: string[] = [];
  const context = {
    control: {},
    consistency: null,
    reserved: { release: () => {} },
    pool: { release: (_session: unknown, verdict: string) => verdicts.push(verdict) },
  } as unknown as RunContext;
  const end = await new Promise<TransactionEnd>((resolve) => {
    const begun = { session, context, savepoint: 's', isReadOnly: false, owner };
    const transaction = new OpenTransaction(begun, times, {
      stepEnded: () => {},
      doubted: async () => {},
      ended: resolve,
    });
    act(transaction, connection);
  });
  assert.equal(verdicts.length, 1);
  return [verdicts.join(), end];
}

test('a session that a transaction was held on is reset before another request has it', async () => {
  for (const end of ['committed', 'rolled_back', 'ended', 'stopped', 'unknown'] as const) {
    const found = await givenBack((transaction) => transaction.release(end, done, 'nothing'));
    assert.deepEqual(found, ['unclean', end]);
  }
  assert.deepEqual(await givenBack((transaction) => transaction.close()), ['unclean', 'stopping']);
});

test('a session that is lost under its transaction is not used again', async () => {
  const found = await givenBack((transaction, connection) => {
    connection.lose();
    // The pool notices it, and calls the owner of the session.
    transaction.session.onLost?.();
  });
  assert.deepEqual(found, ['broken', 'lost']);
});

test('a step that arrives while the transaction ends learns how it ended, and does not run', async () => {
  const session = createScriptedSession(createScriptedConnection());
  const asked: string[] = [];
  const turn = {
    granted: () => asked.push('granted'),
    refused: () => asked.push('refused'),
    isTooLate: (end: TransactionEnd) => asked.push(end),
    expire: () => {},
    isCommit: false,
  };
  const context = {
    control: {},
    consistency: null,
    reserved: { release: () => {} },
    pool: { release: () => {}, admission: { admit: () => null, leave: () => {} } },
  } as unknown as RunContext;
  await new Promise<void>((resolve) => {
    const begun = { session, context, savepoint: 's', isReadOnly: false, owner };
    const transaction = new OpenTransaction(begun, times, {
      stepEnded: () => {},
      doubted: async () => {},
      ended: () => resolve(),
    });
    transaction.close();
    // Its ROLLBACK is under way.
    transaction.request(turn);
    assert.deepEqual(asked, []);
  });
  assert.deepEqual(asked, ['stopping']);
});

test('a transaction that ends by itself reports whether something of it remains', async () => {
  const answers: readonly (readonly [(sql: string) => ScriptedAnswer, Left])[] = [
    [() => 'ok', 'nothing'],
    [(sql) => (sql === 'ROLLBACK' ? { status: 2, warnings: 1 } : 'ok'), 'something'],
    [(sql) => (sql === 'ROLLBACK' ? 'ok' : { errno: 1305 }), 'something'],
  ];
  for (const [answer, expected] of answers) {
    const session = createScriptedSession(createScriptedConnection(answer));
    const context = {
      control: {},
      consistency: null,
      reserved: { release: () => {} },
      pool: { release: () => {} },
    } as unknown as RunContext;
    const found = await new Promise((resolve) => {
      const begun = { session, context, savepoint: 's', isReadOnly: false, owner };
      const transaction = new OpenTransaction(begun, times, {
        stepEnded: () => {},
        doubted: async () => {},
        ended: (_end, left) => resolve(left),
      });
      transaction.close();
    });
    assert.equal(found, expected);
  }
});

test('a transaction that is lost leaves nothing, unless a statement in it may have left something', async () => {
  for (const [isDoubted, expected] of [
    [false, 'nothing'],
    [true, 'unknown'],
  ] as const) {
    const connection = createScriptedConnection();
    const session = createScriptedSession(connection);
    const context = {
      control: {},
      consistency: null,
      reserved: { release: () => {} },
      pool: { release: () => {} },
    } as unknown as RunContext;
    const noted: string[] = [];
    const ended: Left[] = [];
    const begun = { session, context, savepoint: 's', isReadOnly: false, owner };
    const transaction = new OpenTransaction(begun, times, {
      stepEnded: () => {},
      doubted: async () => void noted.push('doubted'),
      ended: (_end, left) => void ended.push(left),
    });
    if (isDoubted) {
      await transaction.doubt({ writes: null, isCall: false });
      await transaction.doubt({ writes: null, isCall: false });
    }
    assert.deepEqual(noted, isDoubted ? ['doubted'] : []);
    connection.lose();
    session.onLost?.();
    assert.deepEqual(ended, [expected]);
  }
});

/** A transaction on a connection of its own. */
function begin(limits: TransactionLimits) {
  const connection = createScriptedConnection();
  const session = createScriptedSession(connection);
  const context = {
    control: {},
    consistency: null,
    reserved: { release: () => {} },
    pool: { release: () => {} },
  } as unknown as RunContext;
  const begun = { session, context, savepoint: 's', isReadOnly: false, owner };
  const transaction = new OpenTransaction(begun, limits, {
    stepEnded: () => {},
    doubted: async () => {},
    ended: () => {},
  });
  return { transaction, connection };
}

function createStep(): Step {
  return {
    granted: () => {},
    refused: () => {},
    isTooLate: () => {},
    expire: () => {},
    isCommit: false,
  };
}

test('while a step runs or its reply is on its way, pings keep the server from taking the transaction for idle, and the gateway does not', (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const limits = { idleMs: pingEveryMs * 3, totalMs: pingEveryMs * 1000 };
  const { transaction, connection } = begin(limits);
  const [first, second] = [createStep(), createStep()];
  const pings = (count: number) => Array.from({ length: count }, () => 'statistics');
  transaction.request(first);
  t.mock.timers.tick(pingEveryMs * 2);
  transaction.release(null, done, 'nothing');
  t.mock.timers.tick(pingEveryMs * 2);
  assert.deepEqual(connection.sent, pings(4));
  // The next step need not wait for that reply.
  transaction.request(second);
  transaction.replyLeft(second);
  transaction.release(null, done, 'nothing');
  t.mock.timers.tick(pingEveryMs * 4);
  assert.deepEqual(connection.sent, pings(8));
  // From here on it may be idle, for as long as the gateway itself allows.
  transaction.replyLeft(first);
  t.mock.timers.tick(pingEveryMs * 3 - 1);
  assert.deepEqual(connection.sent, pings(8));
  t.mock.timers.tick(1);
  assert.notDeepEqual(connection.sent, pings(8));
});

test('a transaction that is over is not pinged', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { transaction, connection } = begin(times);
  const commit = { ...createStep(), isCommit: true };
  transaction.request(commit);
  transaction.release('committed', done, 'nothing');
  transaction.replyLeft(commit);
  t.mock.timers.tick(pingEveryMs * 3);
  assert.deepEqual(connection.sent, []);
});

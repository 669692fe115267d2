// A session of the pipeline: which statements go together in one write, wait for the next one, or can be taken back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, Connection } from '../../../../../src/shared/mysql/connection.ts';
import type { QueryCommand } from '../../../../../src/shared/mysql/query.ts';
import {
  heldUpMs,
  type PipelinedStatement,
  PipelineSession,
} from '../../../../../src/worker/execution/pipeline/pipeline-session.ts';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import { PoolAccounts } from '../../../../../src/worker/servers/pool/pool-accounts.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

const together = 32;
const pool = { accounts: new PoolAccounts(8, 5_000), isBelowShare: () => false };

/** A pipeline session on a connection that only counts, and the numbers of the statements that were written or sent away. */
function create() {
  const writes: number[] = [];
  const connection: Pick<Connection, 'isLost' | 'sendTogether'> = {
    isLost: false,
    sendTogether: (commands: readonly Command[]) => void writes.push(commands.length),
  };
  const session = { connection, maxTextBytes: 1 << 20, isFresh: true } as unknown as Session;
  const place = new PipelineSession(session, null, pool);
  const account = createAccount();
  const expelled: number[] = [];
  const written: number[] = [];
  const add = (from: number, count: number): PipelinedStatement[] =>
    Array.from({ length: count }, (_, index) => {
      const statement: PipelinedStatement = {
        command: {} as QueryCommand,
        written: () => void written.push(from + index),
        expelled: () => void expelled.push(from + index),
        waitLimit: createLimit({ account, since: from + index, longestMs: 1_000 }),
      };
      place.add(statement);
      return statement;
    });
  return { place, writes, written, expelled, add };
}

test('statements beyond one write wait until all that was written is answered', () => {
  const { place, writes, written, add } = create();
  add(0, together + 8);
  place.flush(0);
  assert.deepEqual([writes, place.waiting, place.depth], [[together], 8, together + 8]);
  for (let n = 0; n < together; n += 1) {
    place.flush(n);
    assert.equal(writes.length, 1);
    place.headEnded(n);
  }
  place.flush(together);
  assert.deepEqual([writes, place.waiting, place.depth], [[together, 8], 0, 8]);
  assert.deepEqual(
    written,
    Array.from({ length: together + 8 }, (_, n) => n),
  );
});

test('behind a head without an answer nothing is added, and waiting statements are sent away unwritten', () => {
  const { place, writes, expelled, add } = create();
  add(0, 2);
  place.flush(1_000);
  add(2, 3);
  assert.equal(place.isHeldUp(1_000 + heldUpMs), false);
  assert.equal(place.isOpenTo(10, 1_000 + heldUpMs), true);
  assert.equal(place.isHeldUp(1_001 + heldUpMs), true);
  assert.equal(place.isOpenTo(10, 1_001 + heldUpMs), false);
  place.expelWaiting();
  assert.deepEqual([expelled, writes, place.depth], [[2, 3, 4], [2], 2]);
});

test('a statement is taken back before it is written, not after', () => {
  const { place, writes, add } = create();
  const [first, second] = add(0, 2) as [PipelinedStatement, PipelinedStatement];
  assert.equal(place.withdraw(first), true);
  place.flush(0);
  assert.equal(place.withdraw(second), false);
  assert.deepEqual([writes, place.depth], [[1], 1]);
});

test('if the session may have changed, all statements are sent away, the written ones first', () => {
  const { place, expelled, add } = create();
  add(0, 2);
  place.flush(0);
  add(2, 2);
  place.expelAll();
  assert.deepEqual(expelled, [0, 1, 2, 3]);
  assert.equal(place.waiting, 0);
});

test('a statement that has waited for too long to be written is sent elsewhere; those that may still wait remain', () => {
  const { place, written, expelled, add } = create();
  add(0, 3);
  place.expelLate(({ since }) => since < 2);
  assert.deepEqual(expelled, [0, 1]);
  place.flush(performance.now());
  assert.deepEqual(written, [2]);
});

/** Statements of several clients on one session, and the order in which they are written. */
function createShared() {
  const accounts = new PoolAccounts(8, 5_000);
  const connection: Pick<Connection, 'isLost' | 'sendTogether'> = {
    isLost: false,
    sendTogether: () => {},
  };
  const session = { connection, maxTextBytes: 1 << 20, isFresh: true } as unknown as Session;
  const place = new PipelineSession(session, null, { accounts, isBelowShare: () => true });
  const written: string[] = [];
  const add = (account: Account, count: number, user: string | null = null) => {
    for (let n = 0; n < count; n += 1) {
      accounts.arrive(account, 0);
      place.add({
        command: {} as QueryCommand,
        written: () => void written.push(account.client.name),
        expelled: () => {},
        waitLimit: createLimit({ account, user }),
      });
    }
  };
  return { accounts, place, written, add };
}

test('a write that has no room for all takes the statements of clients in turn', () => {
  const { place, written, add } = createShared();
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  add(loud, 200);
  add(quiet, 5);
  place.flush(0);
  assert.equal(written.length, together);
  assert.deepEqual(
    written.slice(0, 10).filter((name) => name === 'quiet'),
    Array.from({ length: 5 }, () => 'quiet'),
  );
});

test('a statement in the pipeline is in flight until its answer, and its client pays for the time in which it was the head', () => {
  const { accounts, place, add } = createShared();
  const account = createAccount();
  add(account, 3);
  place.flush(0);
  assert.equal(account.inFlight, 3);
  place.headEnded(4);
  place.headEnded(10);
  assert.deepEqual(
    [account.inFlight, account.held.at(10), accounts.of(account).costAt(10)],
    [1, 10, 10],
  );
});

test('each way out of the pipeline ends a statement’s flight', () => {
  const { place, add } = createShared();
  const account = createAccount();
  add(account, 2);
  place.expelWaiting();
  assert.equal(account.inFlight, 0);
  add(account, 2);
  place.expelLate(() => true);
  assert.deepEqual([account.inFlight, place.depth], [0, 0]);
});

test('it is crowded for a client if most of what is there is others’, and takes longer than a millisecond', () => {
  const { accounts, place, add } = createShared();
  const loud = createAccount({ name: 'loud' });
  const quiet = createAccount({ name: 'quiet' });
  const isCrowded = (account: Account) => place.isCrowdedFor(accounts.arrive(account, 0));
  add(loud, 10);
  assert.equal(isCrowded(quiet), false, 'no answer has taken any time');
  place.flush(0);
  for (let n = 1; n <= 8; n += 1) place.headEnded(n * 5);
  assert.deepEqual([isCrowded(quiet), isCrowded(loud)], [true, false]);
  add(quiet, 3);
  assert.deepEqual([isCrowded(quiet), isCrowded(loud)], [false, true]);
});

test('a session that gathers few statements shows it at the second check', () => {
  const { place, add } = createShared();
  add(createAccount(), 3);
  assert.equal(place.checkUse(), false);
  place.expelWaiting();
  assert.equal(place.checkUse(), false);
  assert.equal(place.checkUse(), true);
});

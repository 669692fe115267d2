// The ends of COMMIT and ROLLBACK of an open transaction, and what is recorded about a COMMIT, by each answer of the server. A test cannot
// get each answer from a real server, so the session's lease is a fake.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Answered,
  SessionLease,
  Undone,
} from '../../../../../src/worker/execution/session-lease.ts';
import type { Done, JobTools } from '../../../../../src/worker/execution/transactions/jobs.ts';
import {
  CommitJob,
  RollbackJob,
  type RolledBack,
} from '../../../../../src/worker/execution/transactions/jobs.ts';

const answered: Answered = { kind: 'answered', error: null };
const lost: Answered = { kind: 'lost' };
const refusedWith = (errno: number): Answered => ({
  kind: 'answered',
  error: { errno, sqlState: 'HY000', message: 'refused' },
});

type Commit = { readonly done: Done; readonly noted: readonly string[] };

/** A COMMIT with these answers of the server, and what was recorded of it, in order. */
async function commit(
  { atProof = answered, atCommit = answered }: { atProof?: Answered; atCommit?: Answered } = {},
  isLeft = false,
): Promise<Commit> {
  const noted: string[] = [];
  const job = new CommitJob({
    begun: async () => void noted.push('begun'),
    settled: async (isCommitted) => void noted.push(isCommitted ? 'committed' : 'not committed'),
  });
  const lease = {
    ask: async (sql: string) => (sql === 'COMMIT' ? atCommit : atProof),
    rollBack: async (): Promise<Undone> => 'rolled_back',
    hasLeftSomething: async () => isLeft,
  } as unknown as SessionLease;
  const tools = { lease, savepoint: 's', stopReason: null, commitIsSent: () => noted.push('sent') };
  const done = await job.perform(tools as unknown as JobTools);
  return { done, noted };
}

test('a COMMIT is recorded before it is sent, and its result before the reply', async () => {
  const { done, noted } = await commit();
  assert.deepEqual(noted, ['begun', 'sent', 'committed']);
  assert.equal(done.ended, 'committed');
});

test('a COMMIT without an answer remains unknown in the memory: it is never noted as not committed', async () => {
  const { done, noted } = await commit({ atCommit: lost });
  assert.deepEqual(noted, ['begun', 'sent']);
  assert.deepEqual(done, { end: { kind: 'lost', outcome: 'unknown' }, ended: 'unknown' });
});

test('a COMMIT whose answer is an unrelated error remains unknown in the memory', async () => {
  const { done, noted } = await commit({ atCommit: refusedWith(1180) });
  assert.deepEqual(noted, ['begun', 'sent']);
  assert.equal(done.ended, 'unknown');
});

test('a COMMIT that the server has rolled back is noted as not committed', async () => {
  for (const errno of [1213, 1290, 3100, 3101]) {
    const { done, noted } = await commit({ atCommit: refusedWith(errno) });
    assert.deepEqual(noted, ['begun', 'sent', 'not committed'], `${errno}`);
    assert.equal(done.ended, 'rolled_back');
  }
});

test('a COMMIT is not sent if the transaction is not the one that was begun', async () => {
  const { done, noted } = await commit({ atProof: refusedWith(1305) });
  assert.deepEqual(noted, []);
  assert.deepEqual(done, {
    end: { kind: 'transaction ended', outcome: 'partial' },
    ended: 'ended',
  });
});

test('a transaction that is lost before COMMIT is rolled back only if nothing in it may have stayed', async () => {
  for (const [isDoubted, outcome] of [
    [false, 'rolled_back'],
    [true, 'unknown'],
  ] as const) {
    const notes = { begun: async () => {}, settled: async () => {} };
    const lease = { ask: async () => lost } as unknown as SessionLease;
    const tools = { lease, savepoint: 's', stopReason: null, isDoubted } as JobTools;
    const done = await new CommitJob(notes).perform(tools);
    assert.deepEqual(done.end, { kind: 'transaction ended', outcome });
  }
});

test('a ROLLBACK reports that all is undone only with the proof that the transaction was there to its end', async () => {
  const says = async (undone: Undone, isDoubted = false): Promise<RolledBack> => {
    const job = new RollbackJob();
    const lease = { rollBack: async () => undone };
    await job.perform({ lease, savepoint: 's', isDoubted } as unknown as JobTools);
    return job.undoes;
  };
  assert.equal(await says('rolled_back'), 'all');
  assert.equal(await says('no proof'), 'a part');
  assert.equal(await says('partial'), 'a part');
  assert.equal(await says('unknown'), 'all');
  assert.equal(await says('unknown', true), 'unknown');
  assert.equal(await says('rolled_back', true), 'all');
});

test('a ROLLBACK after a COMMIT reports that nothing is undone, and after an unknown COMMIT that the result is unknown', () => {
  const job = new RollbackJob();
  assert.equal(job.afterEnd('committed', 'nothing').kind, 'answered');
  assert.equal(job.undoes, 'nothing');
  assert.deepEqual(new RollbackJob().afterEnd('unknown', 'nothing'), {
    kind: 'lost',
    outcome: 'unknown',
  });
});

test('a ROLLBACK that waited while its transaction ended otherwise reports whether something of it remains', () => {
  for (const [left, undoes] of [
    ['something', 'a part'],
    ['nothing', 'all'],
    ['unknown', 'unknown'],
  ] as const) {
    const job = new RollbackJob();
    assert.equal(job.afterEnd('ended', left).kind, 'answered');
    assert.equal(job.undoes, undoes);
  }
});

// The memory that a worker proposes, the time of the proposal, and the memory that it uses.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PrimaryMemory } from '../../../../src/shared/servers/primary-memory.ts';
import { type ProposePrimary, SharedMemory } from '../../../../src/worker/servers/shared-memory.ts';

const first: PrimaryMemory = {
  version: 1,
  term: 1,
  primary: {
    address: 'db1',
    identity: 'db1/1',
    number: '1',
    startedAt: 1_000,
    taken: '0-1-1',
    position: '0-1-1',
  },
  replicas: [],
  former: [],
};
const source = { number: '1', uuid: null, address: null };
const moved = { ...first, version: 2, primary: { ...first.primary, position: '0-1-9' } };
const detailed = {
  ...first,
  version: 2,
  replicas: [{ identity: 'db2/2', follows: source, term: 1 }],
};
const next = { ...first, version: 2, term: 2 };

/** A worker's memory before a supervisor that answers as the test says. */
function share(inForce: PrimaryMemory | null) {
  const asked: { base: number | null; memory: PrimaryMemory }[] = [];
  const answers: ((answer: Awaited<ReturnType<ProposePrimary>>) => void)[] = [];
  const time = { ms: 0 };
  const propose: ProposePrimary = (base, memory) => {
    asked.push({ base, memory });
    return new Promise((resolve) => answers.push(resolve));
  };
  const seen = { changes: 0 };
  const onChange = () => {
    seen.changes += 1;
  };
  const shared = new SharedMemory(inForce, propose, onChange, () => time.ms);
  const answer = async (given: Awaited<ReturnType<ProposePrimary>>) => {
    answers.shift()?.(given);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { shared, asked, answer, time, seen };
}

test('a new primary is proposed at once, and in force once the supervisor confirms it', async () => {
  const { shared, asked, answer, seen } = share(null);
  shared.propose(first, false);
  shared.propose(first, false);
  assert.deepEqual(asked, [{ base: null, memory: first }], 'one proposal at a time');
  assert.deepEqual([shared.inForce, seen.changes], [null, 0]);
  await answer({ isAccepted: true, memory: first });
  assert.deepEqual([shared.inForce, seen.changes], [first, 1]);
  shared.propose(next, false);
  assert.deepEqual(asked.at(-1), { base: 1, memory: next });
});

test('of two proposals one wins: the other worker uses the memory in force, and not its own proposal', async () => {
  const { shared, answer, seen } = share(first);
  shared.propose(next, false);
  const other = { ...next, primary: { ...next.primary, identity: 'db3/3' } };
  shared.adopt(other);
  assert.deepEqual([shared.inForce, seen.changes], [other, 1]);
  await answer({ isAccepted: false, memory: other });
  assert.deepEqual([shared.inForce, seen.changes], [other, 1]);
});

test('without an answer nothing is in force, and the memory is proposed again after a later probe', async () => {
  const { shared, asked, answer } = share(first);
  shared.propose(next, false);
  await answer(null);
  assert.equal(shared.inForce, first);
  shared.propose(next, false);
  assert.equal(asked.length, 2);
});

test('a position that changes all the time is proposed at intervals, and at once if the primary is lost', () => {
  const { shared, asked, time } = share(null);
  shared.adopt(first);
  shared.propose(first, false);
  time.ms = 900;
  shared.propose(detailed, false);
  time.ms = 4_900;
  shared.propose(moved, false);
  assert.equal(asked.length, 0);
  shared.propose(moved, true);
  assert.equal(asked.length, 1);
});

test('a worker that has found another primary writes to none before that is remembered, also if it sees the former one again', async () => {
  const { shared, answer } = share(first);
  assert.equal(shared.awaitsPrimary, false);
  shared.propose(next, false);
  assert.equal(shared.awaitsPrimary, true);
  // The supervisor of an instance that ends takes nothing.
  await answer({ isAccepted: false, memory: first });
  shared.propose(first, false);
  shared.adopt(detailed);
  assert.equal(shared.awaitsPrimary, true);
  shared.adopt({ ...next, version: 3 });
  assert.equal(shared.awaitsPrimary, false);
});

test('a worker that is closed proposes nothing', async () => {
  const { shared, asked, answer } = share(first);
  shared.propose(next, false);
  shared.close();
  await answer({ isAccepted: true, memory: next });
  shared.propose(next, false);
  assert.deepEqual([asked.length, shared.inForce], [1, first]);
});

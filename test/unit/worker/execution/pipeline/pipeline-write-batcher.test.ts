// When a batch is written: one alone at the end of its turn, company waited for while it comes, but not for ever.
// Must not know what is written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  maxMs,
  maxTurns,
  WriteBatcher,
} from '../../../../../src/worker/execution/pipeline/pipeline.ts';

/** What waits, and the sizes of what was written; its clock moves only when it is told to. */
function create(fullAt = Number.POSITIVE_INFINITY) {
  const written: number[] = [];
  const time = { ms: 0 };
  let waiting = 0;
  const gathering = new WriteBatcher({
    size: () => waiting,
    isFull: () => waiting >= fullAt,
    write: () => {
      written.push(waiting);
      waiting = 0;
    },
    now: () => time.ms,
  });
  const add = (count: number) => {
    waiting += count;
    gathering.begin();
  };
  return { written, time, add };
}

async function turns(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await turn();
}

test('one alone is written at the end of its turn', async () => {
  const { written, add } = create();
  for (let n = 0; n < 3; n += 1) {
    add(1);
    assert.equal(written.length, n);
    await turn();
    assert.deepEqual(written, Array(n + 1).fill(1));
  }
});

test('what comes in one turn is written together', async () => {
  const { written, add } = create();
  add(1);
  add(1);
  add(1);
  await turn();
  assert.deepEqual(written, [3]);
});

test('where there was company, it is waited for as long as it comes', async () => {
  const { written, add } = create();
  add(2);
  await turn();
  add(1);
  await turn();
  add(1);
  await turn();
  assert.deepEqual(written, [2]);
  await turns(2);
  assert.deepEqual(written, [2, 2]);
});

test('company that never ends does not hold up what has come', async () => {
  const { written, add } = create();
  add(2);
  await turn();
  for (let n = 0; n <= maxTurns; n += 1) {
    assert.equal(written.length, 1, `${n} turns`);
    add(1);
    await turn();
  }
  assert.deepEqual(written, [2, maxTurns + 1]);
});

test('nor does company that is slow to come', async () => {
  const { written, time, add } = create();
  add(2);
  await turn();
  add(1);
  time.ms += maxMs;
  await turn();
  assert.deepEqual(written, [2, 1]);
});

test('what is full is written at once', async () => {
  const { written, add } = create(3);
  add(2);
  await turn();
  add(1);
  await turn();
  add(2);
  await turn();
  assert.deepEqual(written, [2, 3]);
});

// When a batch is written: one alone at the end of its turn, company waited for while it comes, but not for ever.
// Must not know what is written.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Gathering } from '../../src/worker/mysql/gathering.ts';

const mostTurns = 64;

/** What waits, and the sizes of what was written. */
function create() {
  const written: number[] = [];
  let waiting = 0;
  const gathering = new Gathering(
    () => waiting,
    () => {
      written.push(waiting);
      waiting = 0;
    },
  );
  const add = (count: number) => {
    waiting += count;
    gathering.begin();
  };
  return { written, add };
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
  for (let n = 0; n <= mostTurns + 1 && written.length === 1; n += 1) {
    add(1);
    await turn();
  }
  assert.ok(written.length > 1, 'it was written');
});

test('nor does company that is slow to come', async () => {
  const { written, add } = create();
  add(2);
  await turn();
  add(1);
  for (const from = performance.now(); performance.now() - from < 5; ) {
    // A turn that takes its time.
  }
  await turn();
  assert.deepEqual(written, [2, 1]);
});

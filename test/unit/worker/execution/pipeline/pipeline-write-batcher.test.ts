// When statements are written: a single one at the end of its turn of the event loop, several once no more come, within limits.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import {
  maxMs,
  maxTurns,
  WriteBatcher,
} from '../../../../../src/worker/execution/pipeline/pipeline.ts';

/** The statements that wait, and the sizes of the writes; the test moves the clock. */
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

test('a single statement is written at the end of its turn', async () => {
  const { written, add } = create();
  for (let n = 0; n < 3; n += 1) {
    add(1);
    assert.equal(written.length, n);
    await turn();
    assert.deepEqual(written, Array(n + 1).fill(1));
  }
});

test('statements of one turn are written together', async () => {
  const { written, add } = create();
  add(1);
  add(1);
  add(1);
  await turn();
  assert.deepEqual(written, [3]);
});

test('after a write of several statements, the next write waits while more come', async () => {
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

test('a stream of statements that does not end is written after the most turns', async () => {
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

test('a slow stream of statements is written after the longest time', async () => {
  const { written, time, add } = create();
  add(2);
  await turn();
  add(1);
  time.ms += maxMs;
  await turn();
  assert.deepEqual(written, [2, 1]);
});

test('a full write is sent at once', async () => {
  const { written, add } = create(3);
  add(2);
  await turn();
  add(1);
  await turn();
  add(2);
  await turn();
  assert.deepEqual(written, [2, 3]);
});

// Long work is done in turns: no job keeps the event loop for longer than a turn, and several take turns.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pieces } from '../../../../src/shared/pieces.ts';
import { LongWork, type Turns } from '../../../../src/worker/request/long-work.ts';

const plenty = 1_000;

/** A clock that each piece moves on by a millisecond, and turns that the test gives. */
function createTurns() {
  let now = 0;
  const waiting: (() => void)[] = [];
  const turns: Turns = { now: () => now, afterOthers: (callback) => waiting.push(callback) };
  const giveTurn = () => {
    const callback = waiting.shift();
    callback?.();
    return callback !== undefined;
  };
  const pass = () => {
    now += 1;
  };
  return { turns, giveTurn, pass, waiting };
}

test('a job goes on for a turn, and then waits for the others', async () => {
  const { turns, giveTurn, pass, waiting } = createTurns();
  const work = new LongWork(plenty, turns);
  let pieces = 0;
  function* count(): Pieces<string> {
    for (; pieces < 20; pieces += 1) {
      pass();
      yield;
    }
    return 'done';
  }
  const done = work.do(count(), 1);
  assert.equal(pieces, 0, 'nothing runs before the caller goes on');
  const seen: number[] = [];
  while (giveTurn()) seen.push(pieces);
  assert.deepEqual(seen, [7, 15, 20]);
  assert.equal(await done, 'done');
  assert.equal(waiting.length, 0);
});

test('several jobs take turns, one turn at a time for all of them', async () => {
  const { turns, giveTurn, pass, waiting } = createTurns();
  const work = new LongWork(plenty, turns);
  const order: string[] = [];
  function* job(name: string): Pieces<void> {
    for (let piece = 0; piece < 16; piece += 1) {
      if (order.at(-1) !== name) order.push(name);
      pass();
      yield;
    }
  }
  const all = Promise.all(['a', 'b', 'c'].map((name) => work.do(job(name), 1)));
  while (giveTurn()) assert.ok(waiting.length <= 1);
  await all;
  assert.deepEqual(order.slice(0, 6), ['a', 'b', 'c', 'a', 'b', 'c']);
});

test('an error of a job belongs to that job', async () => {
  const { turns, giveTurn } = createTurns();
  const work = new LongWork(plenty, turns);
  // biome-ignore lint/correctness/useYield: it throws before it could
  function* broken(): Pieces<never> {
    throw new Error('broken');
  }
  function* whole(): Pieces<number> {
    yield;
    return 7;
  }
  const failed = assert.rejects(work.do(broken(), 1), /broken/);
  const done = work.do(whole(), 1);
  while (giveTurn());
  await failed;
  assert.equal(await done, 7);
});

test('requests that wait for their work have no more bytes than they may, and what has ended makes room', async () => {
  const { turns, giveTurn } = createTurns();
  const work = new LongWork(100, turns);
  // biome-ignore lint/correctness/useYield: it throws before it could
  function* broken(): Pieces<never> {
    throw new Error('broken');
  }
  assert.ok(work.hasRoomFor(100) && !work.hasRoomFor(101));
  const failed = assert.rejects(work.do(broken(), 60));
  assert.ok(work.hasRoomFor(40) && !work.hasRoomFor(41));
  while (giveTurn());
  await failed;
  assert.ok(work.hasRoomFor(100));
});

// Bounded work: how many pieces run, how many wait and how long, and which comes first.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedWork } from '../../../../src/worker/request/bounded-work.ts';

/** A piece of work that ends when `end` is called. */
function createPiece(name: string, begun: string[]) {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const work = async () => {
    begun.push(name);
    await ended;
    return { name };
  };
  return { work, end: () => end() };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('two run, two wait in their order, and the next is rejected at once', async () => {
  const bounded = new BoundedWork({ maxRunning: 2, maxWaiting: 2, maxWaitMs: 60_000 });
  const begun: string[] = [];
  const pieces = ['a', 'b', 'c', 'd', 'e'].map((name) => createPiece(name, begun));
  const results = pieces.map(({ work }) => bounded.run(work));
  assert.equal(await results[4], null);
  assert.deepEqual(begun, ['a', 'b']);
  pieces[1]?.end();
  assert.deepEqual(await results[1], { name: 'b' });
  await turn();
  assert.deepEqual(begun, ['a', 'b', 'c']);
  for (const { end } of pieces) end();
  assert.deepEqual(
    await Promise.all(results.slice(0, 4)),
    ['a', 'b', 'c', 'd'].map((name) => ({ name })),
  );
  assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
});

test('a piece that has waited for too long is never begun, and leaves its place', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const bounded = new BoundedWork({ maxRunning: 1, maxWaiting: 1, maxWaitMs: 1000 });
  const begun: string[] = [];
  const [running, late, next] = ['running', 'late', 'next'].map((name) => createPiece(name, begun));
  assert.ok(running && late && next);
  const first = bounded.run(running.work);
  const second = bounded.run(late.work);
  await turn();
  t.mock.timers.tick(1000);
  assert.equal(await second, null);
  const third = bounded.run(next.work);
  running.end();
  next.end();
  await Promise.all([first, third]);
  assert.deepEqual(begun, ['running', 'next']);
});

test('a piece that fails gives its place back', async () => {
  const bounded = new BoundedWork({ maxRunning: 1, maxWaiting: 0, maxWaitMs: 1000 });
  await assert.rejects(
    bounded.run(() => Promise.reject(new Error('broken'))),
    /broken/,
  );
  assert.deepEqual(await bounded.run(async () => ({})), {});
});

// Requests with the same key get its lock in the order in which they came. A request that stops waiting is not called.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyLocks } from '../../../../../src/worker/execution/idempotency/key-store.ts';

test('a lock has one owner at a time, in the order of arrival, and each key has its own', () => {
  const locks = new KeyLocks();
  const begun: string[] = [];
  const enter = (id: string, name: string) => locks.acquire(id, () => begun.push(name));
  const first = enter('a', 'first');
  const [second, third, fourth] = ['second', 'third', 'fourth'].map((name) => enter('a', name));
  const other = enter('b', 'other');
  assert.deepEqual([first.wasFree, second?.wasFree, other.wasFree], [true, false, true]);
  assert.deepEqual(begun, []);
  third?.release();
  first.release();
  assert.deepEqual(begun, ['second']);
  first.release();
  second?.release();
  assert.deepEqual(begun, ['second', 'fourth']);
  fourth?.release();
  assert.equal(enter('a', 'again').wasFree, true);
});

test('a request that releases the lock while it begins makes room for the next', () => {
  const locks = new KeyLocks();
  const first = locks.acquire('a', () => {});
  const second = locks.acquire('a', () => second.release());
  let hasBegun = false;
  locks.acquire('a', () => {
    hasBegun = true;
  });
  first.release();
  assert.ok(hasBegun);
});

test('a long line of requests that release the lock at once does not exhaust the stack', () => {
  const locks = new KeyLocks();
  const first = locks.acquire('key', () => undefined);
  let begun = 0;
  const wanted = 20_000;
  for (let each = 0; each < wanted; each += 1) {
    const lock = locks.acquire('key', () => {
      begun += 1;
      lock.release();
    });
  }
  first.release();
  assert.equal(begun, wanted);
  assert.ok(locks.acquire('key', () => undefined).wasFree);
});

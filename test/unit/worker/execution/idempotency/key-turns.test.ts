// Requests with one key take turns in the order in which they came; who leaves while waiting is not called.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyTurns } from '../../../../../src/worker/execution/idempotency/key-turns.ts';

test('one at a time, in the order in which they came, and each key by itself', () => {
  const turns = new KeyTurns();
  const begun: string[] = [];
  const enter = (id: string, name: string) => turns.enter(id, () => begun.push(name));
  const first = enter('a', 'first');
  const [second, third, fourth] = ['second', 'third', 'fourth'].map((name) => enter('a', name));
  const other = enter('b', 'other');
  assert.deepEqual([first.isFirst, second?.isFirst, other.isFirst], [true, false, true]);
  assert.deepEqual(begun, []);
  third?.leave();
  first.leave();
  assert.deepEqual(begun, ['second']);
  first.leave();
  second?.leave();
  assert.deepEqual(begun, ['second', 'fourth']);
  fourth?.leave();
  assert.equal(enter('a', 'anew').isFirst, true);
});

test('whoever leaves within its own beginning makes room for the next', () => {
  const turns = new KeyTurns();
  const first = turns.enter('a', () => {});
  const second = turns.enter('a', () => second.leave());
  let hasBegun = false;
  turns.enter('a', () => {
    hasBegun = true;
  });
  first.leave();
  assert.ok(hasBegun);
});

test('a long line of those who leave as soon as they begin is worked off', () => {
  const turns = new KeyTurns();
  const first = turns.enter('key', () => undefined);
  let begun = 0;
  const wanted = 20_000;
  for (let each = 0; each < wanted; each += 1) {
    const turn = turns.enter('key', () => {
      begun += 1;
      turn.leave();
    });
  }
  first.leave();
  assert.equal(begun, wanted);
  assert.ok(turns.enter('key', () => undefined).isFirst);
});

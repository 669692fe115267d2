// Column definitions that were seen before are the same array again; others never are, and none is kept for ever.
// Must not know queries.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColumnCache } from '../../src/worker/mysql/column-cache.ts';
import type { Column } from '../../src/worker/mysql/packets.ts';
import { columnPacket } from '../support/mysql-answer.ts';

function read(cache: ColumnCache, names: readonly string[]): readonly Column[] {
  cache.begin();
  for (const [index, name] of names.entries()) {
    const packet = columnPacket({ name });
    assert.equal(cache.add(packet, 0, packet.length), index + 1);
  }
  return cache.finish();
}

const namesOf = (columns: readonly Column[]) => columns.map(({ name }) => name.toString());
const wide = Array.from({ length: 1_000 }, (_, n) => `column ${n}`);

for (const names of [[], ['a'], ['a', 'b', 'a'], wide]) {
  test(`${names.length} columns are known again, by what they say and not by their size`, () => {
    const cache = new ColumnCache(false);
    const first = read(cache, names);
    const others = names.map((name) => name.replace(/.$/, '!'));
    const other = read(cache, others);
    assert.deepEqual(namesOf(first), names);
    assert.deepEqual(namesOf(other), others);
    assert.equal(read(cache, names), first);
    assert.equal(read(cache, others), other);
  });
}

test('however many there are, each is read right', () => {
  const cache = new ColumnCache(false);
  for (let round = 0; round < 2; round += 1) {
    for (let n = 10_000; n < 16_000; n += 1) {
      assert.deepEqual(namesOf(read(cache, [`v${n}`, 'w'])), [`v${n}`, 'w']);
    }
  }
  const often = read(cache, ['often']);
  assert.equal(read(cache, ['often']), often);
});

test('more than is kept of definitions is forgotten, and read anew', () => {
  const cache = new ColumnCache(false);
  const first = read(cache, ['first']);
  for (let n = 10; n < 60; n += 1) read(cache, [...wide, '!'.repeat(n)]);
  const again = read(cache, ['first']);
  assert.notEqual(again, first);
  assert.deepEqual(namesOf(again), ['first']);
});

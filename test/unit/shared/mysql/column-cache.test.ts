// Known column definitions give the same array again, others never do, and none remains for ever.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ColumnCache } from '../../../../src/shared/mysql/column-cache.ts';
import type { PacketsAhead } from '../../../../src/shared/mysql/framing.ts';
import type { Column } from '../../../../src/shared/mysql/packets.ts';
import { columnPacket, toBytes } from '../../../support/database/mysql-answer.ts';

function read(cache: ColumnCache, names: readonly string[]): readonly Column[] {
  cache.begin();
  for (const [index, name] of names.entries()) {
    const packet = columnPacket({ name });
    assert.equal(cache.add(packet, 0, packet.length), index + 1);
  }
  return cache.finish('');
}

const namesOf = (columns: readonly Column[]) => columns.map(({ name }) => name.toString());
const wide = Array.from({ length: 1_000 }, (_, n) => `column ${n}`);

for (const names of [[], ['a'], ['a', 'b', 'a'], wide]) {
  test(`${names.length} columns are recognised by their content and not by their size`, () => {
    const cache = new ColumnCache(false, 'mariadb');
    const first = read(cache, names);
    const others = names.map((name) => name.replace(/.$/, '!'));
    const other = read(cache, others);
    assert.deepEqual(namesOf(first), names);
    assert.deepEqual(namesOf(other), others);
    assert.equal(read(cache, names), first);
    assert.equal(read(cache, others), other);
  });
}

test('however many definitions there are, each is read correctly', () => {
  const cache = new ColumnCache(false, 'mariadb');
  for (let round = 0; round < 2; round += 1) {
    for (let n = 10_000; n < 16_000; n += 1) {
      assert.deepEqual(namesOf(read(cache, [`v${n}`, 'w'])), [`v${n}`, 'w']);
    }
  }
  const often = read(cache, ['often']);
  assert.equal(read(cache, ['often']), often);
});

test('definitions beyond the limit are dropped, and read again', () => {
  const cache = new ColumnCache(false, 'mariadb');
  const first = read(cache, ['first']);
  for (let n = 10; n < 60; n += 1) read(cache, [...wide, '!'.repeat(n)]);
  const again = read(cache, ['first']);
  assert.notEqual(again, first);
  assert.deepEqual(namesOf(again), ['first']);
});

/** The definitions as an answer has them, after the header of the result. */
function ahead(names: readonly string[], first = 2): PacketsAhead {
  const whole = toBytes([
    Buffer.from([names.length]),
    ...names.map((name) => columnPacket({ name })),
  ]);
  const bytes = Buffer.concat([whole, Buffer.from('what follows')]);
  const position = 4 + 1;
  for (let at = position, n = first; n < first + names.length; n += 1) {
    bytes[at + 3] = n & 255;
    at += 4 + bytes.readUIntLE(at, 3);
  }
  return { bytes, position, end: bytes.length, sequence: first };
}

function take(cache: ColumnCache, packets: PacketsAhead, count: number): readonly Column[] | null {
  cache.begin();
  return cache.takeKnown(packets, count) ? cache.finish('') : null;
}

for (const names of [['a'], ['a', 'b', 'a'], wide]) {
  test(`${names.length} columns that are known are taken at once, whole and in sequence`, () => {
    const cache = new ColumnCache(false, 'mariadb');
    const others = names.map((name) => name.replace(/.$/, '!'));
    assert.equal(take(cache, ahead(names), names.length), null);
    const first = read(cache, names);
    const other = read(cache, others);
    const packets = ahead(names);
    assert.equal(take(cache, packets, names.length), first);
    assert.equal(packets.bytes.toString('latin1', packets.position), 'what follows');
    assert.equal(packets.sequence, (2 + names.length) & 255);
    assert.equal(take(cache, ahead(others), names.length), other);
    assert.equal(read(cache, names), first);
  });
}

test('definitions that are cut, out of sequence, of another number, or different in a byte are not taken', () => {
  const cache = new ColumnCache(false, 'mariadb');
  read(cache, ['a', 'b']);
  const whole = ahead(['a', 'b']);
  const definitionsEnd = whole.end - 'what follows'.length;
  const refused: readonly (readonly [PacketsAhead, number])[] = [
    [{ ...whole, end: definitionsEnd - 1 }, 2],
    [ahead(['a', 'b'], 3), 2],
    [{ ...whole, sequence: 9 }, 2],
    [ahead(['a', 'b']), 1],
    [ahead(['a', 'b', 'c']), 3],
    ...Array.from({ length: definitionsEnd - whole.position }, (_, n) => {
      const other = ahead(['a', 'b']);
      (other.bytes[other.position + n] as number) ^= 1;
      return [other, 2] as const;
    }),
  ];
  for (const [packets, count] of refused) {
    const { position, sequence } = packets;
    assert.equal(take(cache, packets, count), null);
    assert.deepEqual([packets.position, packets.sequence], [position, sequence]);
  }
  assert.notEqual(take(cache, { ...whole, end: definitionsEnd }, 2), null);
});

test('a frequent set of definitions is not lost among rare ones', () => {
  const cache = new ColumnCache(false, 'mariadb');
  const often = read(cache, ['often']);
  let taken = 0;
  for (let n = 0; n < 100; n += 1) {
    read(cache, [`now ${n}`]);
    if (n % 4 !== 0) continue;
    const found = take(cache, ahead(['often']), 1);
    if (found !== null) taken += 1;
    assert.equal(found ?? read(cache, ['often']), often);
  }
  assert.equal(taken, 25);
});

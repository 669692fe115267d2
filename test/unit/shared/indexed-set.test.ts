// An indexed set holds exactly the members that were added and not removed, and may be changed during an iteration.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Indexed, IndexedSet } from '../../../src/shared/indexed-set.ts';
import { fc } from '../../support/property.ts';

test('holds the members that were added and not removed, like a set', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 200 }), (steps) => {
      const people = Array.from({ length: 10 }, (): Indexed => ({ index: -1 }));
      const set = new IndexedSet<Indexed>();
      const expected = new Set<Indexed>();
      for (const step of steps) {
        const one = people[step] as Indexed;
        if (expected.delete(one)) {
          assert.deepEqual([set.delete(one), set.delete(one)], [true, false]);
        } else {
          expected.add(one);
          set.add(one);
        }
        assert.equal(set.has(one), expected.has(one));
        assert.equal(set.size, expected.size);
      }
      assert.deepEqual(new Set(set), expected);
    }),
  );
});

test('an iteration may remove each member', () => {
  const set = new IndexedSet<Indexed>();
  for (let n = 0; n < 5; n += 1) set.add({ index: -1 });
  let seen = 0;
  for (const one of set) {
    set.delete(one);
    seen += 1;
  }
  assert.deepEqual([seen, set.size], [5, 0]);
});

// A roster holds exactly those who came and did not go, and may be changed by who looks through it.
// Must not know who is in it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Enrolled, Roster } from '../../../src/worker/indexed-set.ts';

test('holds whoever came and did not go, like a set', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 200 }), (steps) => {
      const people = Array.from({ length: 10 }, (): Enrolled => ({ place: -1 }));
      const roster = new Roster<Enrolled>();
      const expected = new Set<Enrolled>();
      for (const step of steps) {
        const one = people[step] as Enrolled;
        if (expected.delete(one)) {
          assert.deepEqual([roster.delete(one), roster.delete(one)], [true, false]);
        } else {
          expected.add(one);
          roster.add(one);
        }
        assert.equal(roster.has(one), expected.has(one));
        assert.equal(roster.size, expected.size);
      }
      assert.deepEqual(new Set(roster), expected);
    }),
  );
});

test('whoever looks through it may send each one away', () => {
  const roster = new Roster<Enrolled>();
  for (let n = 0; n < 5; n += 1) roster.add({ place: -1 });
  let seen = 0;
  for (const one of roster) {
    roster.delete(one);
    seen += 1;
  }
  assert.deepEqual([seen, roster.size], [5, 0]);
});

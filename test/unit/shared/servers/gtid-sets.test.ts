// MySQL's sets of GTIDs, as its manual writes them ("GTID Format and Storage"): read, united, subtracted, compared.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatSets,
  type GtidSets,
  holdsSets,
  parseSets,
  subtractSets,
  uniteSets,
} from '../../../../src/shared/servers/gtid-sets.ts';
import { fc } from '../../../support/property.ts';

const a = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const b = '3e11fa47-71ca-11e1-9e33-c80aa9429563';

function setsOf(text: string): GtidSets {
  const sets = parseSets(text);
  assert.ok(sets !== null, text);
  return sets;
}

test('reads lists, several sources, tags, and owned sets, and writes the shortest list', () => {
  for (const [text, written] of [
    ['', ''],
    [`${a}:1`, `${a}:1`],
    [`${a}:1-3:4:7-9,\n${b}:5`, `${a}:1-4:7-9,${b}:5`],
    [`${a}:5-9:1-6`, `${a}:1-9`],
    [`${a.toUpperCase()}:1`, `${a}:1`],
    [`${a}:1:tag:2-3`, `${a}:1,${a}:tag:2-3`],
    [`${a}:12#45:13#46`, `${a}:12-13`],
  ] as const) {
    assert.equal(formatSets(setsOf(text)), written, text);
  }
});

test('a text that is no list is rejected', () => {
  for (const text of ['x', a, `${a}:`, `${a}:1-`, `${a}:-1`, `${a}:1;drop`, `${a}:1'`, '0-1-5']) {
    assert.equal(parseSets(text), null, text);
  }
});

const numbers = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 30 });
const listed = (of: readonly number[]) => (of.length === 0 ? '' : `${a}:${of.join(':')}`);

test('uniting, subtracting and comparing is that of sets of numbers', () => {
  fc.assert(
    fc.property(numbers, numbers, (one, other) => {
      const [left, right] = [setsOf(listed(one)), setsOf(listed(other))];
      const both = setsOf(listed([...one, ...other]));
      assert.equal(formatSets(uniteSets(left, right)), formatSets(both));
      assert.equal(
        formatSets(subtractSets(left, right)),
        formatSets(setsOf(listed(one.filter((n) => !other.includes(n))))),
      );
      assert.equal(
        holdsSets(left, right),
        other.every((n) => one.includes(n)),
      );
      assert.equal(formatSets(setsOf(formatSets(both))), formatSets(both));
    }),
  );
});

test('a set holds a range only whole: neither its beginning nor its end alone', () => {
  const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
  const holds = (one: string, other: string) => {
    const [own, asked] = [parseSets(`${uuid}:${one}`), parseSets(`${uuid}:${other}`)];
    assert.ok(own !== null && asked !== null);
    return holdsSets(own, asked);
  };
  assert.equal(holds('3-7', '3-7'), true);
  for (const other of ['3-8', '2-7', '2-8', '8', '2', '1-2', '3-7:9']) {
    assert.equal(holds('3-7', other), false, other);
  }
});

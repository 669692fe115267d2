// The promise of the console's JSON: every digit stays, whatever else is read as JSON.parse would.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Digits, type Exact, parseExact } from '../../../src/console/exact-json.ts';
import { fc } from '../../support/property.ts';

/** The value that JSON.parse gives. */
function plain(value: Exact): unknown {
  if (value instanceof Digits) return Number(value.text);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
  return value;
}

test('keeps the digits of numbers that no double holds', () => {
  const digits = ['9007199254740993', '-0', '1.50', '1e23', '0.1000000000000000055511151231257827'];
  const read = parseExact(`[${digits.join(',')}]`) as readonly Digits[];
  assert.deepEqual(
    read.map(({ text }) => text),
    digits,
  );
});

test('reads whatever JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(plain(parseExact(text)), JSON.parse(text));
    }),
  );
});

test('reads a text of any length, and quotes and backslashes at its end', () => {
  const texts = ['z'.repeat(20_000_000), '\n'.repeat(20_000_000), '\\', '\\\\"', '"', '\\"\\'];
  const read = parseExact(` ${JSON.stringify(texts)}\n`) as readonly string[];
  assert.equal(read.length, texts.length);
  // A failure of assert.deepEqual would print the texts.
  for (const [at, text] of texts.entries()) assert.ok(read[at] === text, `text ${at}`);
});

test('takes names that are those of objects for ordinary names', () => {
  const read = parseExact('{"__proto__":"a","constructor":"b"}') as ReadonlyMap<string, Exact>;
  assert.deepEqual(
    [...read],
    [
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ],
  );
});

test('refuses invalid JSON', () => {
  for (const text of ['', '[1', '{"a"}', '{"a":1', '[1]2', 'nul', "'a'", '{1:2}', '"a', '"a\\"']) {
    assert.throws(() => parseExact(text), SyntaxError, text);
  }
});

// Work in pieces gives the same result as work at once, and is interrupted often enough.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLosslessNumber } from 'lossless-json';
import { allAtOnce, type Pieces, stepsInPiece } from '../../../../src/shared/pieces.ts';
import { analyseInPieces } from '../../../../src/shared/sql/analyse.ts';
import { bindInPieces } from '../../../../src/shared/sql/bind.ts';
import { maxMembers } from '../../../../src/worker/endpoints/json-pieces.ts';
import { parseObject, parseObjectInPieces } from '../../../../src/worker/endpoints/json-text.ts';
import { cases, fc } from '../../../support/property.ts';

/** The number of interruptions. */
function interruptions(work: Pieces<unknown>): number {
  let count = 0;
  while (work.next().done !== true) count += 1;
  return count;
}

/** LosslessNumbers are compared by their digits. */
function plain(value: unknown): unknown {
  if (isLosslessNumber(value)) return `number ${value.value}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value).map(([key, member]) => [key, plain(member)]);
}

function same(text: string): void {
  const [whole, inPieces] = [parseObject(text), allAtOnce(parseObjectInPieces(text))];
  assert.equal(inPieces.ok, whole.ok, text);
  if (!whole.ok || !inPieces.ok) {
    assert.equal(whole.ok || whole.code, inPieces.ok || inPieces.code, text);
    return;
  }
  assert.deepEqual(plain(inPieces.object), plain(whole.object), text);
  // A number that a double holds exactly may come as either.
  const digits = (found: unknown) => JSON.stringify(plain(found)).replaceAll('"number ', '"');
  const numbers = (text_: string) => text_.replaceAll(/"(-?\d[^"]*)"/g, '$1');
  assert.equal(numbers(digits(inPieces.exact())), numbers(digits(whole.exact())), text);
}

test('JSON in pieces gives the same value, and invalid JSON is refused', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.nat(3), (object, indent) =>
      same(JSON.stringify(object, null, indent)),
    ),
    { numRuns: cases(300) },
  );
  const text = fc
    .array(fc.constantFrom(...String.raw`{}[],:"\ 01.-+eEtruefalsn`, '\n'), { maxLength: 30 })
    .map((characters) => characters.join(''));
  fc.assert(fc.property(text, same), { numRuns: cases(500) });
  for (const one of [
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}',
    '{"a":1e400}',
    '{"a":-0,"b":12345678901234567890}',
    '{"a":0.10}',
    '{"a":"\\ud83d\\ude00\\n"}',
    '{"a":"\n"}',
    '{"a":01}',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":tru}',
    '[]',
    '1',
    '',
    ' ',
    '{}',
    '{} x',
    '\ufeff{}',
    `{"a":${'['.repeat(70)}${']'.repeat(70)}}`,
    '{"a":[[1,[2]],{}]}',
  ]) {
    same(one);
  }
});

test('an object has at most 65,535 members where it is parsed in pieces', () => {
  const text = (count: number) =>
    `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`;
  assert.equal(allAtOnce(parseObjectInPieces(text(maxMembers))).ok, true);
  const refused = allAtOnce(parseObjectInPieces(text(maxMembers + 1)));
  assert.equal(refused.ok || refused.code, 'TOO_MANY_PARAMETERS');
});

test('long work is interrupted every few thousand steps', () => {
  const most = 100_000;
  const least = Math.floor(most / stepsInPiece);
  const selects = 'select 1;'.repeat(Math.ceil(most / 3));
  const list = Array.from({ length: most }, (_, index) => index);
  for (const [what, work] of Object.entries({
    statements: analyseInPieces(selects),
    statement: analyseInPieces(`select 1${'+1'.repeat(most / 2)}`),
    bind: bindInPieces('select 1 in (?)', [list], 1e9, 'PARAMS'),
    placeholders: bindInPieces(
      `select 1${'+?'.repeat(most / 2)}`,
      list.slice(0, most / 2),
      1e9,
      'PARAMS',
    ),
    array: parseObjectInPieces(JSON.stringify({ list })),
    objects: parseObjectInPieces(JSON.stringify({ list: list.map((n) => ({ n })) })),
  })) {
    assert.ok(interruptions(work) >= least - 1, what);
  }
});

// Texts with the same key have the same digest, and texts that differ only in their literals have the same key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { digest } from '../../../../src/shared/sql/digest.ts';
import { DigestKeys } from '../../../../src/shared/sql/digest-key.ts';
import { cases, fc } from '../../../support/property.ts';

const keys = new DigestKeys();

const alike: readonly (readonly [one: string, other: string])[] = [
  ['select a from t where id = 1', 'select a from t where id = 4711'],
  ['select a from t where id = 1', 'select a from t where id = 0xFF'],
  ['select a from t where id = 1.5', 'select a from t where id = 20'],
  ["select a from t where b = 'x'", "select a from t where b = 'it''s \\n \"this\"'"],
  ['select a from t where b in (1, 2)', "select a from t where b in (1,2,'x', 4)"],
  ["select N'a', x'41'", "select N'b''', x'4142'"],
  ['select a /* one */ from t', 'select a /* it`s "another" */ from t'],
  ['select a -- one\nfrom t', "select a -- it's another\nfrom t"],
  ['select /*! 1 */ a', 'select /*! 2 */ a'],
  ["select 'a\\'b', c", "select '\\'', anything 'else'"],
];
const different: readonly (readonly [one: string, other: string])[] = [
  ['select a from t1', 'select a from t2'],
  ['select a1b from t', 'select a2b from t'],
  ['select `1` from t', 'select `2` from t'],
  ['select ?', 'select ??'],
  ["select 'a'", "select 'a' from t"],
  ["select /* ' */ a /* ' */", "select /* ' */ b /* ' */"],
  ["select a # '\n, b # '", "select a # '\n, c # '"],
  ["select `'`, a, `'`", "select `'`, b, `'`"],
  ["select 1, 'a\\'", "select 1 'a\\'"],
];

for (const [one, other] of alike) {
  test(`has one key for ${JSON.stringify(one)} and ${JSON.stringify(other)}`, () => {
    assert.equal(digest(one), digest(other));
    assert.equal(keys.keyOf(one, 0), keys.keyOf(other, 0));
  });
}

for (const [one, other] of different) {
  test(`distinguishes ${JSON.stringify(one)} from ${JSON.stringify(other)}`, () => {
    assert.notEqual(keys.keyOf(one, 0), keys.keyOf(other, 0));
  });
}

test('texts with different seeds have different keys', () => {
  assert.notEqual(keys.keyOf('select 1', 0), keys.keyOf('select 1', 1));
});

const pieces = [
  ...`' '' " "" \` \`\` \\ \\' \\" \\\\ , , ( ) . .. - -- # / /* */ /*! /*M! /*+ ; : :: := @ @@ ? = $ $$ e N x _utf8mb4 é \0`.split(
    ' ',
  ),
  ...['1', '2', '42', '1a', '0xFF', '1e', '.5', "'x'", "'y'", '"z"', "'it''s'", '`n`', 'a', 'b'],
  ...['null', ':a', '-- c\n', '-- d\n', '# e\n', '/* f */', '/* g */', '/*! h */', '/*! i */'],
  ...[' ', ' ', '\n', '\t'],
];
const text = fc.array(fc.constantFrom(...pieces), { maxLength: 9 }).map((found) => found.join(''));

/** Groups texts by their keys: in each, all must have one digest. */
function findDisagreement(texts: readonly string[]): readonly string[] | null {
  const first = new Map<number, string>();
  for (const one of texts) {
    const key = keys.keyOf(one, 7);
    const before = first.get(key);
    if (before === undefined) first.set(key, one);
    else if (digest(before) !== digest(one)) return [before, one];
  }
  return null;
}

test('whatever the texts, equal keys mean equal digests', () => {
  const texts = [...alike.flat(), ...fc.sample(text, { numRuns: cases(20_000) })];
  assert.equal(findDisagreement(texts), null);
  const shared = texts.length - new Set(texts.map((one) => keys.keyOf(one, 7))).size;
  assert.ok(shared >= alike.length, `only ${shared} texts share a key`);
});

test('replacing a piece by another changes the digest only if it changes the key', () => {
  fc.assert(
    fc.property(
      text,
      fc.constantFrom(...pieces),
      fc.constantFrom(...pieces),
      text,
      (before, one, other, after) => {
        const texts = [`${before}${one}${after}`, `${before}${other}${after}`];
        assert.equal(findDisagreement(texts), null);
      },
    ),
    { numRuns: cases(10_000) },
  );
});

test('only the part of a long text that its digest shows counts', () => {
  const long = `select a from t where id in (${'1,'.repeat(50_000)}`;
  assert.equal(keys.keyOf(`${long}2)`, 0), keys.keyOf(`${long}3) and secret`, 0));
  const short = long.slice(0, 64 * 1024);
  assert.notEqual(digest(short), digest(long));
  assert.notEqual(keys.keyOf(short, 0), keys.keyOf(long, 0));
});

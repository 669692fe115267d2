// A statement's shape: literals do not matter, everything else does.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapeOf } from '../../../../src/shared/sql/digest-key.ts';
import { assertProportional, repeating } from '../../../support/processor-time.ts';
import { anyCharacter, fc } from '../../../support/property.ts';

const point = 'select * from City where ID = 1';

test('statements that differ in their literals have one shape', () => {
  for (const [one, other] of [
    [point, 'select * from City where ID = 98765'],
    [point, 'select * from City where ID = 0'],
    ["select * from t where v = 'a'", "select * from t where v = ''"],
    ["select * from t where v = 'a'", "select * from t where v = 'it''s'"],
    ["select * from t where v = 'a'", "select * from t where v = 'it\\'s'"],
    ['select * from t where v = "a"', 'select * from t where v = "b\\"c"'],
    ["select * from t where v = 'a' and id = 1", "select * from t where v = 'b2' and id = 22"],
    ["select * from t where v = 'é'", "select * from t where v = '日本'"],
  ] as const) {
    assert.equal(shapeOf(one), shapeOf(other), `${one} | ${other}`);
  }
});

test('everything else matters', () => {
  const statements = [
    point,
    'select * from City where ID = -1',
    'select * from City where ID = 1.5',
    'select * from City where ID > 1',
    'select * from City where ID = 1 ',
    'select * from City where ID = 1 or 1',
    "select * from City where ID = '1'",
    'select * from City where ID = "1"',
    'select ID from City where ID = 1',
    'select * from Town where ID = 1',
    'SELECT * from City where ID = 1',
    'select * from City where ID = 1 for update',
    'select * from City where ID = 1 limit 1',
    'select * from City where ID in (1,2)',
    'select * from City where ID in (1,2,3)',
    '',
  ];
  assert.equal(new Set(statements.map(shapeOf)).size, statements.length);
});

test('thirty thousand different texts have thirty thousand shapes', () => {
  const letters = (n: number) =>
    n.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'[Number(digit)] ?? '');
  const texts = Array.from(
    { length: 30_000 },
    (_, n) => `select ${letters(n)} from t where id = ${n}`,
  );
  const distinct = new Set(texts.map((text) => text.replace(/\d+/, '0')));
  assert.equal(new Set(texts.map(shapeOf)).size, distinct.size);
});

test('any text has a shape, the same each time, an integer that is exact', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), (text) => {
      const shape = shapeOf(text);
      assert.ok(Number.isSafeInteger(shape) && shape >= 0, `${shape}`);
      assert.equal(shapeOf(text), shape);
    }),
  );
});

test('any two numbers, and any two strings, give the same shape', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), fc.string(), fc.string(), (a, b, s, u) => {
      const sql = (id: number, text: string) =>
        `select v from t where id=${id} and v=${quote(text)}`;
      assert.equal(shapeOf(sql(a, s)), shapeOf(sql(b, u)));
    }),
  );
});

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

test('unfinished texts have a shape', () => {
  for (const text of [
    "'",
    '"',
    "select 'a",
    "select 'a\\",
    '\\',
    "'\\",
    "''''",
    '\ud800',
    "'\udc00",
  ]) {
    assert.ok(Number.isSafeInteger(shapeOf(text)), text);
  }
});

test('a long text takes time in proportion to its length, whatever it consists of', () => {
  for (const piece of ['a', '1', "'", "'\\'", '"a', '\\', '/*', '日', "a'1'"]) {
    assertProportional(repeating(piece), 2 ** 18, shapeOf);
  }
});

// A digest shows a statement's shape and none of its literals, whatever the text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { digest } from '../../../../src/shared/sql/digest.ts';
import { cases, fc } from '../../../support/property.ts';

const shapes: readonly (readonly [sql: string, shape: string])[] = [
  ["select * from City where Name = 'Baku'", 'select * from City where Name = ?'],
  ['select "a", 1, -2.5, .5, 1e-5, 0xFF, 1.e5', 'select ?'],
  ["select N'a', x'41' , b'01', _latin1 'é', _utf8mb4 X'c3a9'", 'select ?'],
  ['select * from t where id in (1, 2,3 , -4)', 'select * from t where id in (?)'],
  ["insert into t(a, b) values (1,'x'),(2,NULL), (3, 'y')", 'insert into t(a, b) values (?)'],
  [
    "insert into t values (1,now(),'x'),(2,now(),'y')",
    'insert into t values (?, now(), ?), (?, now(), ?)',
  ],
  [
    'select a from t where b is not null limit 10, 20',
    'select a from t where b is not null limit ?',
  ],
  ['select /* secret */ a -- more\n from t # end', 'select a from t'],
  ['select /*!40101 SQL_NO_CACHE */ a', 'select /*!*/ a'],
  ['select t.a, `b c`.d, t.1a, @x, @@version', 'select t.a, `b c`.d, t.?, @x, @@version'],
  ["set @x := 'secret', @y=-1", 'set @x := ?, @y = ?'],
  ['select a<=b, a!=-1, (a), -a', 'select a <= b, a != ?, (a), - a'],
  [
    "grant all on *.* to app@'10.0.0.%' identified by 'secret'",
    'grant all on *.* to app@? identified by ?',
  ],
  ['select 1; select 2;', 'select ?; select ?;'],
  ["select 'a' 'b' from dual", 'select ? from dual'],
  ['', ''],
];

for (const [sql, shape] of shapes) {
  test(`shows the shape of ${JSON.stringify(sql)}`, () => {
    assert.equal(digest(sql), shape);
  });
}

test('ends where servers may cut the text differently, or it is cut off', () => {
  assert.equal(digest("select 'it\\'s', 'secret' from t"), 'select…');
  assert.equal(digest("select a, 'open secret"), 'select a,…');
  assert.equal(digest('select ` secret'), 'select…');
  assert.equal(digest('select $$ secret $$'), 'select…');
});

test('is bounded however long the text', () => {
  const longList = `select a from t where id in (${Array.from({ length: 100_000 }, (_, n) => n).join(',')})`;
  assert.match(digest(longList), /^select a from t where id in \(\?…$/);
  const longText = `select ${'a, '.repeat(100_000)}b`;
  assert.ok(digest(longText).length <= 1025);
});

const secret = 'qzx7531';
const literals = [
  `'${secret}'`,
  `"${secret}"`,
  `'it''s ${secret}'`,
  `'\\'${secret}'`,
  `'${secret}\\\\'`,
  '7531',
  '-7531.7531',
  '.7531',
  '7531e-7531',
  '0x7531',
  `_utf8mb4 X'7531'`,
  `n'${secret}'`,
  `/* ${secret} */`,
  `-- ${secret}\n`,
  `# '${secret}\n`,
  `/*!50000 '${secret}' */`,
];
const words =
  'select a b.c ` `` , ; ( ) = - + . @ @@ is null in values ? :name \' " \\ /* */ \0 $$'.split(' ');

test('no literal remains, whatever surrounds it', () => {
  const piece = fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...literals) },
    { weight: 3, arbitrary: fc.constantFrom(...words, ' ', '\n') },
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const sql = pieces.join(' ');
      const shape = digest(sql);
      // A stray quote may turn a literal inside out: the server's names are names here too.
      const hasStrayQuotes = pieces.some((one) => ["'", '"', '`', '/*', '\\'].includes(one));
      if (!hasStrayQuotes) assert.ok(!shape.includes('7531'), `${JSON.stringify(sql)} -> ${shape}`);
      assert.ok(shape.length <= 1025);
    }),
    { numRuns: cases(1000) },
  );
});

// The lexer's promises: it cuts text where MySQL and MariaDB cut it, in linear time.
import assert from 'node:assert/strict';
import test from 'node:test';
import { doubts, Lexer, tokenKinds } from '../../../../src/shared/sql/lexer.ts';
import { assertProportional, repeating } from '../../../support/processor-time.ts';

function tokens(sql: string, escapes = { single: true, double: true }): [number, string][] {
  const lexer = new Lexer(sql, escapes);
  const found: [number, string][] = [];
  while (lexer.next() !== tokenKinds.end)
    found.push([lexer.kind, sql.slice(lexer.start, lexer.end)]);
  return found;
}

const texts = (sql: string) => tokens(sql).map(([, text]) => text);

function doubt(sql: string): number {
  const lexer = new Lexer(sql);
  while (lexer.next() !== tokenKinds.end);
  return lexer.doubt;
}

test('keeps literals and quoted names whole, doubled and escaped quotes included', () => {
  assert.deepEqual(tokens(`'a''?\\\\' "b""?" \`c\`\`?\``), [
    [tokenKinds.string, `'a''?\\\\'`],
    [tokenKinds.string, `"b""?"`],
    [tokenKinds.quotedName, '`c``?`'],
  ]);
  assert.deepEqual(texts("'a' 'b'"), ["'a'", "'b'"]);
  assert.deepEqual(texts("N'a?' X'41' _latin1'?'"), ['N', "'a?'", 'X', "'41'", '_latin1', "'?'"]);
});

test('reads a backslash as the session does', () => {
  assert.deepEqual(texts(`'\\' x'`), [`'\\' x'`]);
  assert.deepEqual(tokens(`'\\' x`, { single: false, double: false }), [
    [tokenKinds.string, `'\\'`],
    [tokenKinds.word, 'x'],
  ]);
  assert.deepEqual(tokens(`"\\" x`, { single: true, double: false }), [
    [tokenKinds.string, `"\\"`],
    [tokenKinds.word, 'x'],
  ]);
});

test('skips comments where the server skips them, and nowhere else', () => {
  assert.deepEqual(texts('a # b\nc -- d\ne --\tf\ng /* ? */ h /*/ i */ j'), [
    'a',
    'c',
    'e',
    'g',
    'h',
    'j',
  ]);
  assert.deepEqual(texts('a--b'), ['a', '-', '-', 'b']);
  assert.deepEqual(texts('a --'), ['a']);
  assert.deepEqual(texts('a -- b\rc'), ['a']);
  assert.deepEqual(texts('2*/*c*/3'), ['2', '*', '3']);
  assert.deepEqual(texts("/* ' */ a /* ` */"), ['a']);
});

test('reports executable comments, which are SQL to some servers', () => {
  assert.deepEqual(tokens('a /*!50000 b */ c /*M! d */'), [
    [tokenKinds.word, 'a'],
    [tokenKinds.executableComment, '/*!50000 b */'],
    [tokenKinds.word, 'c'],
    [tokenKinds.executableComment, '/*M! d */'],
  ]);
});

test('finds placeholders, and none in assignments, labels and double colons', () => {
  assert.deepEqual(tokens('? :a :b_1 :größe'), [
    [tokenKinds.placeholder, '?'],
    [tokenKinds.namedPlaceholder, ':a'],
    [tokenKinds.namedPlaceholder, ':b_1'],
    [tokenKinds.namedPlaceholder, ':größe'],
  ]);
  assert.deepEqual(tokens('(:a)')[1], [tokenKinds.namedPlaceholder, ':a']);
  assert.deepEqual(tokens(':=')[0], [tokenKinds.operator, ':=']);
  for (const sql of ['a:b', '1:b', '`a`:b', "'a':b", '::b', ': b', ':1', ':$', ':']) {
    assert.ok(!tokens(sql).some(([kind]) => kind === tokenKinds.namedPlaceholder), sql);
  }
  assert.deepEqual(tokens('::b')[0], [tokenKinds.colon, ':']);
});

test('distinguishes variables from words, and numbers from names', () => {
  assert.deepEqual(tokens('@a @@b 1a 2.5;'), [
    [tokenKinds.userAt, '@'],
    [tokenKinds.word, 'a'],
    [tokenKinds.systemAt, '@@'],
    [tokenKinds.word, 'b'],
    [tokenKinds.number, '1a'],
    [tokenKinds.number, '2'],
    [7, '.'],
    [tokenKinds.number, '5'],
    [tokenKinds.semicolon, ';'],
  ]);
});

test('Unicode spaces are letters, as in a utf8mb4 session', () => {
  assert.deepEqual(texts('a\u00a0b \u3000c 日本😀'), ['a\u00a0b', '\u3000c', '日本😀']);
});

test('a text that another sql_mode, server or version would cut differently is in doubt', () => {
  for (const sql of [`'\\''`, `"\\""`, `'a\\'`]) assert.equal(doubt(sql), doubts.backslash, sql);
  for (const sql of ['`\0`', '"\0"', '# \0', '\0', '-- \0'])
    assert.equal(doubt(sql), doubts.nul, sql);
  for (const sql of [
    "/*! ' */",
    '/*!99999 ? */',
    '/*! /* */',
    '/*! ; */',
    "/*+ X('*/') */",
    '/*M! # */',
  ]) {
    assert.ok(doubt(sql) & doubts.comment, sql);
  }
  assert.equal(doubt('$a$ ? $a$'), doubts.dollar);
  for (const sql of [
    `'\\\\' '\\n' '\0' "\\'" '\\"'`,
    'a$b$ $c',
    "/* ' ? \0 */",
    '/*!50000 FORCE INDEX (a) */',
    '/*+ MAX_EXECUTION_TIME(5) */',
  ]) {
    assert.equal(doubt(sql), 0, sql);
  }
});

test('reports literals and comments without an end', () => {
  for (const sql of ["'a", '"a', '`a', '/* a', "'a''", "'a\\'", '/*! a', '/*/']) {
    const lexer = new Lexer(sql);
    while (lexer.next() !== tokenKinds.end);
    assert.ok(lexer.unterminated, sql);
  }
});

test('takes linear time on hostile text', () => {
  const size = 1 << 20;
  for (const unit of [
    "'",
    "\\'",
    '/*',
    '/*!',
    '--',
    '`',
    '$',
    '@',
    ':a',
    '"\\"',
    "'\\''",
    '#',
    '/*+"',
    '(',
    'a',
    '*/',
  ]) {
    assertProportional(repeating(unit), size, tokensCount);
  }
});

test('takes linear time on a long literal, whatever is in it', () => {
  const size = 1 << 20;
  for (const quote of ["'", '"', '`']) {
    for (const unit of [
      '\\\\',
      '\\n',
      `\\${quote}`,
      quote + quote,
      '\0',
      `${'a'.repeat(99)}\\\\`,
    ]) {
      assertProportional((length) => quote + repeating(unit)(length), size, tokensCount);
    }
  }
});

function tokensCount(sql: string): number {
  const lexer = new Lexer(sql);
  let count = 0;
  while (lexer.next() !== tokenKinds.end) count += 1;
  return count;
}

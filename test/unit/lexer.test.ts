// The lexer's promises: it cuts text where MySQL and MariaDB cut it, in linear time.
// Must not need a database.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  DOUBT_BACKSLASH,
  DOUBT_COMMENT,
  DOUBT_DOLLAR,
  DOUBT_NUL,
  Lexer,
} from '../../src/worker/sql/lexer.ts';
import {
  COLON,
  END,
  EXECUTABLE_COMMENT,
  NAMED_PLACEHOLDER,
  NUMBER,
  OPERATOR,
  PLACEHOLDER,
  QUOTED_NAME,
  SEMICOLON,
  STRING,
  SYSTEM_AT,
  USER_AT,
  WORD,
} from '../../src/worker/sql/tokens.ts';

function tokens(sql: string, escapes = { single: true, double: true }): [number, string][] {
  const lexer = new Lexer(sql, escapes);
  const found: [number, string][] = [];
  while (lexer.next() !== END) found.push([lexer.kind, sql.slice(lexer.start, lexer.end)]);
  return found;
}

const texts = (sql: string) => tokens(sql).map(([, text]) => text);

function doubt(sql: string): number {
  const lexer = new Lexer(sql);
  while (lexer.next() !== END);
  return lexer.doubt;
}

test('keeps literals and quoted names whole, doubled and escaped quotes included', () => {
  assert.deepEqual(tokens(`'a''?\\\\' "b""?" \`c\`\`?\``), [
    [STRING, `'a''?\\\\'`],
    [STRING, `"b""?"`],
    [QUOTED_NAME, '`c``?`'],
  ]);
  assert.deepEqual(texts("'a' 'b'"), ["'a'", "'b'"]);
  assert.deepEqual(texts("N'a?' X'41' _latin1'?'"), ['N', "'a?'", 'X', "'41'", '_latin1', "'?'"]);
});

test('reads a backslash as the session does', () => {
  assert.deepEqual(texts(`'\\' x'`), [`'\\' x'`]);
  assert.deepEqual(tokens(`'\\' x`, { single: false, double: false }), [
    [STRING, `'\\'`],
    [WORD, 'x'],
  ]);
  assert.deepEqual(tokens(`"\\" x`, { single: true, double: false }), [
    [STRING, `"\\"`],
    [WORD, 'x'],
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
    [WORD, 'a'],
    [EXECUTABLE_COMMENT, '/*!50000 b */'],
    [WORD, 'c'],
    [EXECUTABLE_COMMENT, '/*M! d */'],
  ]);
});

test('finds placeholders, and none in assignments, labels and double colons', () => {
  assert.deepEqual(tokens('? :a :b_1 :größe'), [
    [PLACEHOLDER, '?'],
    [NAMED_PLACEHOLDER, ':a'],
    [NAMED_PLACEHOLDER, ':b_1'],
    [NAMED_PLACEHOLDER, ':größe'],
  ]);
  assert.deepEqual(tokens('(:a)')[1], [NAMED_PLACEHOLDER, ':a']);
  assert.deepEqual(tokens(':=')[0], [OPERATOR, ':=']);
  for (const sql of ['a:b', '1:b', '`a`:b', "'a':b", '::b', ': b', ':1', ':$', ':']) {
    assert.ok(!tokens(sql).some(([kind]) => kind === NAMED_PLACEHOLDER), sql);
  }
  assert.deepEqual(tokens('::b')[0], [COLON, ':']);
});

test('tells variables from words, and numbers from names', () => {
  assert.deepEqual(tokens('@a @@b 1a 2.5;'), [
    [USER_AT, '@'],
    [WORD, 'a'],
    [SYSTEM_AT, '@@'],
    [WORD, 'b'],
    [NUMBER, '1a'],
    [NUMBER, '2'],
    [7, '.'],
    [NUMBER, '5'],
    [SEMICOLON, ';'],
  ]);
});

test('takes Unicode spaces for letters, as a utf8mb4 session does', () => {
  assert.deepEqual(texts('a\u00a0b \u3000c 日本😀'), ['a\u00a0b', '\u3000c', '日本😀']);
});

test('doubts what another sql_mode, server or version would cut elsewhere', () => {
  for (const sql of [`'\\''`, `"\\""`, `'a\\'`]) assert.equal(doubt(sql), DOUBT_BACKSLASH, sql);
  for (const sql of ['`\0`', '"\0"', '# \0', '\0', '-- \0'])
    assert.equal(doubt(sql), DOUBT_NUL, sql);
  for (const sql of [
    "/*! ' */",
    '/*!99999 ? */',
    '/*! /* */',
    '/*! ; */',
    "/*+ X('*/') */",
    '/*M! # */',
  ]) {
    assert.ok(doubt(sql) & DOUBT_COMMENT, sql);
  }
  assert.equal(doubt('$a$ ? $a$'), DOUBT_DOLLAR);
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

test('says when something was never closed', () => {
  for (const sql of ["'a", '"a', '`a', '/* a', "'a''", "'a\\'", '/*! a', '/*/']) {
    const lexer = new Lexer(sql);
    while (lexer.next() !== END);
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
    const sql = unit.repeat(size / unit.length);
    const from = performance.now();
    tokensCount(sql);
    assert.ok(performance.now() - from < 2000, unit);
  }
});

function tokensCount(sql: string): number {
  const lexer = new Lexer(sql);
  let count = 0;
  while (lexer.next() !== END) count++;
  return count;
}

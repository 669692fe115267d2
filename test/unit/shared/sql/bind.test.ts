// Binding's promises: exact digits, literals that mean one thing, refusals instead of guesses.
// Must not need a database.
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { parse as parseLossless } from 'lossless-json';
import {
  type BindOptions,
  type Bound,
  bind as bindWithin,
  type Parameters,
} from '../../../../src/shared/sql/bind.ts';

const plenty = 1_000_000;

function bind(sql: string, params: Parameters, options?: BindOptions): Bound {
  return bindWithin(sql, params, plenty, options);
}

function bound(sql: string, params: Parameters): string {
  const result = bind(sql, params);
  assert.ok(result.ok, JSON.stringify(result));
  return result.sql;
}

function code(result: Bound): string {
  assert.ok(!result.ok, JSON.stringify(result));
  return result.failure.code;
}

const v1 = { allowLists: true, allowBinary: true };

test('puts values where placeholders stand, in order and by name', () => {
  assert.equal(bound('select ?, ? , ?', [1, 'a', null]), "select 1, _utf8mb4 X'61' , NULL");
  assert.equal(bound('select :b,:a , :b', { a: true, b: false }), 'select FALSE,TRUE , FALSE');
  assert.equal(bound('select 1', []), 'select 1');
  assert.equal(bound('select 1', {}), 'select 1');
  assert.equal(bound('select 1 from t where a=? ;', [1]), 'select 1 from t where a=1 ;');
});

test('leaves placeholders in literals, names and comments alone', () => {
  const rest = '\'? :a\' "? :a" `? :a` /* ? :a */ # ? :a\n-- ? :a\n/*+ X(1) */ @x:=1';
  assert.equal(bound(`select ${rest} ?`, [1]), `select ${rest} 1`);
  assert.equal(bound(`select ${rest} :b`, { b: 1 }), `select ${rest} 1`);
});

test('keeps the digits of a number', () => {
  for (const digits of [
    '18446744073709551616',
    '0.10',
    '-0.0',
    '1E5',
    '1e-7',
    '-9223372036854775808',
    '9'.repeat(65),
  ]) {
    const params = parseLossless(`[${digits}]`) as unknown[];
    assert.equal(bound('select ?', params), `select ${digits}`);
  }
});

test('refuses numbers that the server would cut', () => {
  for (const digits of ['9'.repeat(66), `0.${'1'.repeat(31)}`, `${'9'.repeat(60)}.123456`]) {
    assert.equal(code(bind('select ?', parseLossless(`[${digits}]`) as unknown[])), 'PARAMS_VALUE');
  }
  for (const value of [Number.NaN, Number.POSITIVE_INFINITY, undefined, {}, [], 1n, new Date()]) {
    assert.equal(code(bind('select ?', [value])), 'PARAMS_VALUE');
  }
});

test('never lets a literal merge with its neighbours', () => {
  assert.equal(bound('select 5-?', [-3]), 'select 5-(-3)');
  assert.equal(bound('select 5--?', [3]), 'select 5--(3)');
  assert.equal(bound('select a?b', [1]), 'select a 1 b');
  assert.equal(bound("select ?'b'", ['a']), "select _utf8mb4 X'61' 'b'");
  assert.equal(bound('select/?/2', [4]), 'select/ 4 /2');
  assert.equal(bound('select ??', [1, 2]), 'select 1  2');
  assert.equal(bound('select ?/**/', [1]), 'select 1 /**/');
  assert.equal(bound('limit?', [1]), 'limit 1');
  assert.equal(bound('X?', ['41']), "X _utf8mb4 X'3431'");
});

test('counts values and matches names exactly', () => {
  assert.equal(code(bind('select ?', [])), 'PARAMS_COUNT');
  assert.equal(code(bind('select ?', [1, 2])), 'PARAMS_COUNT');
  assert.equal(code(bind('select ?', { a: 1 })), 'PARAMS_COUNT');
  assert.equal(code(bind('select :a', { b: 1 })), 'PARAMS_NAME');
  assert.equal(code(bind('select :a', { a: 1, b: 1 })), 'PARAMS_NAME');
  assert.equal(code(bind('select :constructor, :toString', {})), 'PARAMS_NAME');
  assert.equal(bound('select :__proto__', JSON.parse('{"__proto__":1}')), 'select 1');
  const failure = bind('select ?, ?', [1]);
  assert.ok(!failure.ok && /2 placeholder.*1 value/.test(failure.failure.message));
});

test('takes one statement only', () => {
  for (const sql of ['select ?; select 1', 'select ?; -- c', 'select ?;;x', '; select ?']) {
    assert.equal(code(bind(sql, [1])), 'PARAMS_SEVERAL');
  }
  assert.equal(bound("select ?, ';' ; ;\n", [1]), "select 1, ';' ; ;\n");
});

test('refuses text whose literals depend on sql_mode, server or version', () => {
  for (const sql of [
    `select '\\'', ?`,
    `select "\\"", ?`,
    'select `\0`, ?',
    "select /*!99999 ' */ ?",
    'select /*!50000 ? */',
    'select $$ ? $$',
    "select ?, 'a",
    'select ? /* a',
    'select ?, `a',
  ]) {
    assert.equal(code(bind(sql, [1])), 'PARAMS_TEXT', sql);
  }
  assert.equal(bound("select '\\\\', '\\n', ?", [1]), "select '\\\\', '\\n', 1");
});

test('refuses half a surrogate pair', () => {
  for (const value of ['\ud800', 'a\udc00', '\ud800\ud800', '\udc00\ud800']) {
    assert.equal(code(bind('select ?', [value])), 'PARAMS_VALUE');
  }
  assert.equal(bound('select ?', ['😀']), "select _utf8mb4 X'f09f9880'");
});

test('takes lists for IN (?) and binary strings only where they are allowed', () => {
  assert.deepEqual(bind('a in (?) and b not IN ( ? )', [[1, 'x'], [2]], v1), {
    ok: true,
    sql: "a in (1,_utf8mb4 X'78') and b not IN ( 2 )",
  });
  assert.deepEqual(bind('?', [{ $binary: 'AP8=' }], v1), { ok: true, sql: "_binary X'00ff'" });
  for (const sql of ['?', '(?)', 'in ?', 'in (?, 1)', 'in (1, ?)', 'f(?)', 'in (?']) {
    assert.equal(code(bind(sql, [[1]], v1)), 'PARAMS_VALUE', sql);
  }
  assert.equal(code(bind('in (?)', [[]], v1)), 'PARAMS_VALUE');
  assert.equal(code(bind('in (?)', [[[1]]], v1)), 'PARAMS_VALUE');
  assert.equal(code(bind('in (?)', [[1]])), 'PARAMS_VALUE');
  assert.equal(code(bind('?', [{ $binary: '' }])), 'PARAMS_VALUE');
  for (const $binary of ['AP8', 'A P8=', '!', 'AP9=']) {
    assert.equal(code(bind('?', [{ $binary }], v1)), 'PARAMS_VALUE', $binary);
  }
});

test('never throws, whatever the text and the values', () => {
  const piece = fc.constantFrom(
    "'",
    '"',
    '`',
    '\\',
    '?',
    ':a',
    '--',
    '/*',
    '*/',
    '!',
    ';',
    '\0',
    '#',
    '\n',
    'x',
    '(',
    ')',
    'in',
    ' ',
    '$',
  );
  const text = fc.array(piece, { maxLength: 30 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(
      text,
      fc.array(fc.jsonValue(), { maxLength: 3 }),
      fc.boolean(),
      (sql, params, extended) => {
        const result = extended ? bind(sql, params, v1) : bind(sql, params);
        assert.equal(typeof (result.ok ? result.sql : result.failure.message), 'string');
      },
    ),
    { numRuns: 3000 },
  );
});

test('a text that would be too long is refused before it is made, however the length comes about', () => {
  const plain = { allowLists: false, allowBinary: false };
  const cases: [sql: string, params: Parameters, options: BindOptions, bound: string][] = [
    ['select ?, é', ['é'], plain, "select _utf8mb4 X'c3a9', é"],
    ['select :a,:a', { a: 1 }, plain, 'select 1,1'],
    ['select :longname;', { longname: 1 }, plain, 'select 1;'],
    ['select -?x', [-1], plain, 'select -(-1) x'],
    ['in (?)', [[1, 22, 'x']], v1, "in (1,22,_utf8mb4 X'78')"],
    ['?', [{ $binary: 'AP8=' }], v1, "_binary X'00ff'"],
    ['é', [], plain, 'é'],
  ];
  for (const [sql, params, options, text] of cases) {
    const bytes = Buffer.byteLength(text);
    assert.deepEqual(bindWithin(sql, params, bytes, options), { ok: true, sql: text });
    assert.equal(code(bindWithin(sql, params, bytes - 1, options)), 'STATEMENT_TOO_LARGE', sql);
  }
});

test('the longest text of all is refused at once, and many small values take no time', () => {
  const uses = Array.from({ length: 9600 }, () => ':a').join(',');
  const from = performance.now();
  assert.equal(code(bind(`select ${uses}`, { a: 'x'.repeat(28_000) })), 'STATEMENT_TOO_LARGE');
  assert.equal(code(bind('select ?', ['x'.repeat(16 * 1024 ** 2)])), 'STATEMENT_TOO_LARGE');
  assert.equal(bound(`select ${uses}`, { a: 1 }).length, 'select '.length + 2 * 9600 - 1);
  assert.ok(performance.now() - from < 1000);
});

// Binding's promises: exact digits, literals that mean one thing, refusals instead of guesses.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parse as parseLossless } from 'lossless-json';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import {
  type Bound,
  bind as bindWithin,
  type Parameters,
  type ParametersKey,
} from '../../../../src/shared/sql/bind.ts';
import { processorMs } from '../../../support/processor-time.ts';
import { cases, fc } from '../../../support/property.ts';

const classify = (sql: string) => analyse(sql).classification;

const plenty = 1_000_000;

function bind(sql: string, params: Parameters, key?: ParametersKey): Bound {
  return bindWithin(sql, params, plenty, key);
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

/** The place and the text of a complaint. */
function complaint(result: Bound): [offset: number | null, message: string] {
  assert.ok(!result.ok, JSON.stringify(result));
  return [result.failure.offset, result.failure.message];
}

const emptyList = 'SELECT NULL FROM (SELECT NULL) AS empty_list WHERE FALSE';

test('replaces placeholders by values, in order and by name', () => {
  assert.equal(bound('select ?, ? , ?', [1, 'a', null]), "select 1, _utf8mb4 X'61' , NULL");
  assert.equal(bound('select :b,:a , :b', { a: true, b: false }), 'select FALSE,TRUE , FALSE');
  assert.equal(bound('select 1', []), 'select 1');
  assert.equal(bound('select 1', {}), 'select 1');
  assert.equal(bound('select 1 from t where a=? ;', [1]), 'select 1 from t where a=1 ;');
});

test('a text without placeholders is bound only to no values, within the limit', () => {
  for (const sql of ['select 1', "select '?'", 'select ÄÖÜ']) {
    const bytes = Buffer.byteLength(sql);
    assert.equal(bound(sql, []), sql);
    assert.deepEqual(bindWithin(sql, [], bytes), { ok: true, sql });
    assert.equal(code(bindWithin(sql, [], bytes - 1)), 'STATEMENT_TOO_LARGE', sql);
  }
  assert.equal(code(bind('select 1; select 2', [])), 'PARAMS_SEVERAL');
  assert.equal(code(bind('select 1', [1])), 'PARAMS_COUNT');
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
});

test('the error about an array for names, or for a ? inside quotes, explains arrays', () => {
  for (const sql of ['select :a', "select '?'"]) {
    const refused = bind(sql, [1]);
    assert.equal(code(refused), 'PARAMS_COUNT');
    assert.match(
      refused.ok ? '' : refused.failure.message,
      /an array is for \? .* object for :name/,
    );
  }
});

test('an error names the parameter and the place, and no value', () => {
  const secret = 'swordfish';
  const long = 'n'.repeat(1000);
  const cases: [string, Parameters, number | null, RegExp][] = [
    ['é ?, ?, ?', [1], 5, /3 placeholder.*PARAMS has 1 value.*at offset 5/],
    ['select ?', [1, secret], null, /1 placeholder.*PARAMS has 2 value/],
    ['select ?', { a: secret }, 7, /written :name.*at offset 7/],
    ['select :a, :b', { a: secret }, 11, /no value for the name at offset 11: "b"/],
    ['select :a', { a: 1, 'x"\n': secret }, null, /does not use: "x\\"\\n"$/],
    [`select :${long}`, {}, 7, /: "n{64}"$/],
    ['select ?', { [long]: secret }, 7, /written :name/],
    ['select 1', { [long]: secret }, null, /not use: "n{64}"; placeholders are/],
    ['select ?, ?', [1, { x: secret }], 10, /^PARAMS\[1\] is not a string, number/],
    ['select :id', { id: { $binary: secret } }, 7, /^PARAMS\["id"\] is a \$binary that is not/],
    ['select ?, ?', [1, `${secret}\ud800`], 10, /^PARAMS\[1\] contains half of a surrogate pair/],
    ['x in (?)', [[1, [secret]]], 6, /^PARAMS\[0\]\[1\] is not a string/],
    ['select ?', [[secret]], 7, /^PARAMS\[0\] is an array.* IN \(\?\).*at offset 7$/],
    ['x in (:ids, 1)', { ids: [secret] }, 6, /^PARAMS\["ids"\] is an array/],
    ['select ?; select 2', [secret], 10, /one statement.*offset 10/],
  ];
  for (const [sql, params, offset, words] of cases) {
    const [at, message] = complaint(bind(sql, params));
    assert.equal(at, offset, sql);
    assert.match(message, words);
    assert.ok(!message.includes(secret), message);
  }
  const [, named] = complaint(bind('select ?', [], 'params'));
  assert.match(named, /params has 0 value/);
  assert.match(complaint(bind('?', [{}], 'params'))[1], /^params\[0\] is no/);
});

test('accepts only one statement', () => {
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

test('a text without parameters does not change, however a session reads it', () => {
  for (const sql of ["select 'it\\'s'", "select /*!50000 '1' */", "select 'a"]) {
    assert.equal(bound(sql, []), sql);
    assert.equal(bound(sql, {}), sql);
    assert.equal(code(bind(sql, [1])), 'PARAMS_TEXT');
  }
});

test('refuses half a surrogate pair', () => {
  for (const value of ['\ud800', 'a\udc00', '\ud800\ud800', '\udc00\ud800']) {
    assert.equal(code(bind('select ?', [value])), 'PARAMS_VALUE');
  }
  assert.equal(bound('select ?', ['😀']), "select _utf8mb4 X'f09f9880'");
});

test('an array is the list of IN (?)', () => {
  for (const [sql, params, text] of [
    ['a in (?) and b not IN ( ? )', [[1, 'x'], [2]], "a in (1,_utf8mb4 X'78') and b not IN ( 2 )"],
    [
      'a In(:i) or b in /* ids */ (:i)',
      { i: [null, true] },
      'a In(NULL,TRUE) or b in /* ids */ (NULL,TRUE)',
    ],
    ['a in (?)', [[{ $binary: 'AP8=' }]], "a in (_binary X'00ff')"],
    ['a in (?) and b = ?', [[1], 2], 'a in (1) and b = 2'],
    ['a in (?, ?)', [1, 2], 'a in (1, 2)'],
  ] as const) {
    assert.equal(bound(sql, params), text);
  }
});

test('an array anywhere else, or in another array, is refused', () => {
  for (const sql of [
    '?',
    '(?)',
    'in ?',
    'in (?, 1)',
    'in (1, ?)',
    'in (?',
    'in ((?))',
    'in (-?)',
    'f(?)',
    'a.in (?)',
    '@in (?)',
    '`in` (?)',
    "'in' (?)",
    'inn (?)',
    'in (?+1)',
    'in (? -- c\n + 1)',
    'in /*!50000 ( */ ?)',
  ]) {
    for (const list of [[1], []]) assert.equal(code(bind(sql, [list])), 'PARAMS_VALUE', sql);
  }
  for (const list of [[[1]], [[]], [1, { a: 1 }]]) {
    assert.equal(code(bind('in (?)', [list])), 'PARAMS_VALUE');
  }
});

test("an empty array is a query without rows, which does not change the statement's classification", () => {
  assert.equal(bound('a in (?)', [[]]), `a in (${emptyList})`);
  assert.equal(bound('a not in ( :i )', { i: [] }), `a not in ( ${emptyList} )`);
  for (const sql of ['select n from t where n in (?)', 'delete from t where n not in (?)']) {
    const [full, empty] = [classify(bound(sql, [[1]])), classify(bound(sql, [[]]))];
    for (const key of [
      'kind',
      'single',
      'readOnlyAllowed',
      'leavesSessionClean',
      'repeatable',
    ] as const) {
      assert.deepEqual(empty[key], full[key], `${key}: ${sql}`);
    }
    assert.deepEqual(empty.tables, full.tables);
  }
});

test('$binary is a binary string, from padded base64 alone', () => {
  assert.equal(bound('?', [{ $binary: 'AP8=' }]), "_binary X'00ff'");
  assert.equal(bound('?', [{ $binary: '' }]), "_binary X''");
  for (const $binary of ['AP8', 'A P8=', '!', 'AP9=', 'AP8=\n', '_-8=', 'AP8==', 1, null]) {
    assert.equal(code(bind('?', [{ $binary }])), 'PARAMS_VALUE', String($binary));
  }
  assert.equal(code(bind('?', [{ $binary: 'AP8=', more: 1 }])), 'PARAMS_VALUE');
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
    fc.property(text, fc.array(fc.jsonValue(), { maxLength: 3 }), (sql, params) => {
      const result = bind(sql, params);
      assert.equal(typeof (result.ok ? result.sql : result.failure.message), 'string');
    }),
    { numRuns: cases(1000) },
  );
});

test('a text that would be too long is refused before it is built, whatever makes it long', () => {
  const cases: [sql: string, params: Parameters, bound: string][] = [
    ['select ?, é', ['é'], "select _utf8mb4 X'c3a9', é"],
    ['select :a,:a', { a: 1 }, 'select 1,1'],
    ['select :longname;', { longname: 1 }, 'select 1;'],
    ['select -?x', [-1], 'select -(-1) x'],
    ['in (?)', [[1, 22, 'x']], "in (1,22,_utf8mb4 X'78')"],
    ['in (?)', [[]], `in (${emptyList})`],
    ['in (:a) in (:a)', { a: [1, 2] }, 'in (1,2) in (1,2)'],
    ['?', [{ $binary: 'AP8=' }], "_binary X'00ff'"],
    ['in (?)', [[{ $binary: 'AP8=' }, '']], "in (_binary X'00ff',_utf8mb4 X'')"],
    ['é', [], 'é'],
  ];
  for (const [sql, params, text] of cases) {
    const bytes = Buffer.byteLength(text);
    assert.deepEqual(bindWithin(sql, params, bytes), { ok: true, sql: text });
    assert.equal(code(bindWithin(sql, params, bytes - 1)), 'STATEMENT_TOO_LARGE', sql);
  }
});

test('a text beyond the limit is refused before it is built, and many small values take little time', () => {
  const uses = Array.from({ length: 9600 }, () => ':a').join(',');
  const $binary = Buffer.alloc(12 * 1024 ** 2).toString('base64');
  const list = Array.from({ length: 300_000 }, () => 1000);
  const lists = Array.from({ length: 2000 }, () => 'a in (:l)').join(' or ');
  const peakBefore = process.resourceUsage().maxRSS;
  const spentMs = processorMs(() => {
    // Made, this one would be half a gigabyte long.
    assert.equal(code(bind(`select ${uses}`, { a: 'x'.repeat(28_000) })), 'STATEMENT_TOO_LARGE');
    assert.equal(code(bind('select ?', ['x'.repeat(16 * 1024 ** 2)])), 'STATEMENT_TOO_LARGE');
    assert.equal(code(bind('select ?', [{ $binary }])), 'STATEMENT_TOO_LARGE');
    assert.equal(code(bind('a in (?)', [list])), 'STATEMENT_TOO_LARGE');
    assert.equal(code(bind(lists, { l: list.slice(0, 1000) })), 'STATEMENT_TOO_LARGE');
    assert.equal(bound(`select ${uses}`, { a: 1 }).length, 'select '.length + 2 * 9600 - 1);
  });
  assert.ok(process.resourceUsage().maxRSS - peakBefore < 200 * 1024);
  assert.ok(spentMs < 5000, `${spentMs} ms of the processor`);
});

test('a negative number is enclosed where the server would give COLLATE to its digits alone', () => {
  const cases: [sql: string, params: Parameters, bound: string][] = [
    ['select ? collate x', [-1], 'select (-1) collate x'],
    ['select :a/* c */COLLATE x', { a: -1.5 }, 'select (-1.5) /* c */COLLATE x'],
    ['select ? /*!50000 collate x */', [-1], 'select (-1) /*!50000 collate x */'],
    ['select a|?collate x', [-1], 'select a| (-1) collate x'],
    ['select ? collate x, ?', [1, -1], 'select 1 collate x, -1'],
    ["select ? 'a', ? `collate`", [-1, -1], "select -1 'a', -1 `collate`"],
  ];
  for (const [sql, params, text] of cases) assert.equal(bound(sql, params), text);
});

test('a placeholder of another language is answered with those that there are', () => {
  for (const sql of ['select * from t where a = %s', 'select * from t where a = $1']) {
    assert.match(complaint(bind(sql, [1]))[1], /placeholders are \? or :name, never %s or \$1/);
  }
  const named = complaint(bind('select * from t where a = %(a)s', { a: 1 }));
  assert.match(named[1], /does not use: "a"; placeholders are \? or :name/);
});

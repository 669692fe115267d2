// A call of a named statement: which values are good, what the client reads if they are not, and the SQL with the good ones.
import assert from 'node:assert/strict';
import test from 'node:test';
import { parse as parseLossless } from 'lossless-json';
import {
  type CheckedCall,
  checkCall,
  type GivenValues,
  prepareStatement,
  writeCall,
} from '../../../../src/shared/named/call.ts';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';
import type { EnumValues } from '../../../../src/shared/named/scalar.ts';
import { allAtOnce } from '../../../../src/shared/pieces.ts';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { builtInEverywhere } from '../../../../src/shared/sql/vocabulary.ts';

const plenty = 1_000_000;
const unknownYet: EnumValues = () => null;
const head = '-- name: a :many\n-- for: *\n';

function prepared(text: string, enumValues: EnumValues = unknownYet) {
  const file = parseFile(text, 'a.sql', { hasIdempotencyTable: true });
  assert.ok(file.ok, JSON.stringify(file));
  const [statement] = file.statements;
  assert.ok(statement !== undefined);
  return prepareStatement(statement, enumValues);
}

type Callable = ReturnType<typeof prepared>;

function checked(callable: Callable, given: GivenValues, claims = {}): CheckedCall {
  return allAtOnce(checkCall(callable, given, claims));
}

/** The values of a body, with all digits of its numbers. */
function body(text: string): GivenValues {
  return { kind: 'json', params: parseLossless(text) as Record<string, unknown> };
}

function query(text: string): GivenValues {
  return { kind: 'text', fields: [...new URLSearchParams(text)] };
}

function refusal(callable: Callable, given: GivenValues, claims = {}): string {
  const found = checked(callable, given, claims);
  assert.ok(!found.ok, JSON.stringify(found));
  return `${found.refusal.reason}: ${found.refusal.message}`;
}

function written(callable: Callable, given: GivenValues, claims = {}) {
  const found = checked(callable, given, claims);
  assert.ok(found.ok, JSON.stringify(found));
  const call = allAtOnce(writeCall(callable, found.values, plenty, builtInEverywhere));
  assert.ok(call.ok);
  return call.parts;
}

function sql(callable: Callable, given: GivenValues, claims = {}): string {
  return written(callable, given, claims)[0]?.sql ?? '';
}

const hex = (text: string) => `_utf8mb4 X'${Buffer.from(text).toString('hex')}'`;

/** One parameter of a type: the literals of good values, and bad ones, as JSON; texts of a query string behind `q:`. */
type TypeCase = {
  readonly type: string;
  readonly good: readonly (readonly [given: string, literal: string])[];
  readonly bad: readonly string[];
  readonly wanted: RegExp;
};

const uuid = '123e4567-e89b-12d3-a456-426614174000';
const typeCases: readonly TypeCase[] = [
  {
    type: 'int',
    good: [
      ['0', '0'],
      ['-0', '0'],
      ['5', '5'],
      ['"5"', '5'],
      ['5.0', '5'],
      ['5e2', '500'],
      ['9007199254740993', '9007199254740993'],
      ['"9007199254740993"', '9007199254740993'],
      ['18446744073709551615', '18446744073709551615'],
      ['-9223372036854775808', '-9223372036854775808'],
      ['q:-7', '-7'],
    ],
    bad: [
      '1.5',
      '18446744073709551616',
      '-9223372036854775809',
      '1e400',
      '"05"',
      '"+5"',
      '" 5"',
      '""',
      '"0x5"',
      'true',
      '[5]',
      '{}',
      'q:',
      'q:five',
      'q:1 or 1=1',
    ],
    wanted: /x must be a whole number$/,
  },
  {
    type: 'int(9007199254740992..9007199254740993)',
    good: [['9007199254740993', '9007199254740993']],
    bad: ['9007199254740991', '9007199254740994', '9007199254740993.5'],
    wanted: /from 9007199254740992 to 9007199254740993/,
  },
  {
    type: 'decimal(6,2; -100..1000.50)',
    good: [
      ['5', '5.00'],
      ['"12.3"', '12.30'],
      ['1e2', '100.00'],
      ['-0.10', '-0.10'],
      ['1000.500', '1000.50'],
      ['q:0.01', '0.01'],
    ],
    bad: ['0.001', '1000.51', '-100.01', '"a"', 'null', 'false', '"1,5"', 'q:.5'],
    wanted:
      /^parameter: x must (?:not be null|be a number with at most 4 digits before the point and 2 after it from -100 to 1000\.50)$/,
  },
  {
    type: 'decimal(65,30)',
    good: [[`"${'9'.repeat(35)}.${'1'.repeat(30)}"`, `${'9'.repeat(35)}.${'1'.repeat(30)}`]],
    bad: [`"${'9'.repeat(36)}"`, `"0.${'1'.repeat(31)}"`, `"${'9'.repeat(10_000)}"`],
    wanted: /a number with/,
  },
  {
    type: 'float(-1000..1000)',
    good: [
      ['0.1', '0.1e0'],
      ['5', '5e0'],
      ['1e-7', '1e-7'],
      ['0.12345678901234567890', '0.12345678901234568e0'],
      ['q:2.5', '2.5e0'],
    ],
    bad: ['1e400', '1001', '"2.5"', 'q:Infinity', 'q:NaN', 'q:0x10', 'true'],
    wanted: /a number from -1000 to 1000/,
  },
  {
    type: 'bool',
    good: [
      ['true', 'TRUE'],
      ['false', 'FALSE'],
      ['q:true', 'TRUE'],
      ['q:false', 'FALSE'],
    ],
    bad: ['1', '"true"', 'q:1', 'q:True'],
    wanted: /true or false/,
  },
  {
    type: 'text(3)',
    good: [
      ['""', hex('')],
      ['"abc"', hex('abc')],
      ['"😀😀😀"', hex('😀😀😀')],
      ['"\'\\\\"', hex("'\\")],
      ['q:abc', hex('abc')],
      ['q:', hex('')],
    ],
    bad: ['"abcd"', '"😀😀😀😀"', '"\\ud800"', '5', 'true', 'q:null'],
    wanted: /a text of at most 3 characters/,
  },
  {
    type: 'text(/[a-z]+|\\d{2}/, 10)',
    good: [
      ['"abc"', hex('abc')],
      ['"12"', hex('12')],
    ],
    bad: ['"abc1"', '"123"', '""', '"abc\\n"', '"Abc"'],
    wanted: /that matches/,
  },
  {
    type: "date('2000-01-01'..'2099-12-31')",
    good: [
      ['"2024-02-29"', hex('2024-02-29')],
      ['"2000-02-29"', hex('2000-02-29')],
      ['q:2024-12-31', hex('2024-12-31')],
    ],
    bad: [
      '"2023-02-29"',
      '"2100-02-29"',
      '"2024-04-31"',
      '"2024-00-10"',
      '"2024-13-10"',
      '"2024-1-1"',
      '"1999-12-31"',
      '"2100-01-01"',
      '"2024-01-01T00:00"',
      '20240101',
    ],
    wanted: /a date that exists/,
  },
  {
    type: 'date',
    good: [['"0001-01-01"', hex('0001-01-01')]],
    bad: ['"0000-00-00"', '"0000-01-01"', '"1900-02-29"', '"10000-01-01"'],
    wanted: /a date that exists/,
  },
  {
    type: "datetime('2020-01-01T10:00'..)",
    good: [
      ['"2020-01-01 10:00:00"', hex('2020-01-01 10:00:00')],
      ['"2020-01-01T10:00:00.000000"', hex('2020-01-01 10:00:00.000000')],
      ['"2020-01-01T10:00"', hex('2020-01-01 10:00:00')],
      ['"2024-02-29 23:59:59.5"', hex('2024-02-29 23:59:59.5')],
    ],
    bad: [
      '"2020-01-01 09:59:59.999999"',
      '"2024-02-30 10:00:00"',
      '"2024-02-29 24:00:00"',
      '"2024-02-29 10:60:00"',
      '"2024-02-29 10:00:60"',
      '"2024-02-29 10:00:00Z"',
      '"2024-02-29 10:00:00.1234567"',
      '"2024-02-29"',
    ],
    wanted: /a date and time that exist/,
  },
  {
    type: "time('-10:00'..'100:00')",
    good: [
      ['"10:30:00"', hex('10:30:00')],
      ['"-09:59:59.5"', hex('-09:59:59.5')],
      ['"100:00"', hex('100:00:00')],
    ],
    bad: ['"-10:00:01"', '"100:00:00.1"', '"10:60:00"', '"1:00"', '"900:00:00"', '"10"'],
    wanted: /a time/,
  },
  {
    type: 'time',
    good: [['"838:59:59"', hex('838:59:59')]],
    bad: ['"838:59:59.1"', '"-839:00:00"'],
    wanted: /a time/,
  },
  {
    type: 'json',
    good: [
      ['{"a":[1,9007199254740993,1.10,null]}', hex('{"a":[1,9007199254740993,1.10,null]}')],
      ['"a"', hex('"a"')],
      ['5', hex('5')],
      ['q:{"a": 1.10}', hex('{"a":1.10}')],
      ['q:null', hex('null')],
      [`${'['.repeat(64)}${']'.repeat(64)}`, hex(`${'['.repeat(64)}${']'.repeat(64)}`)],
      ['{"__proto__":{"a":1}}', hex('{"__proto__":{"a":1}}')],
    ],
    bad: [
      'q:',
      'q:{',
      `q:${'['.repeat(65)}${']'.repeat(65)}`,
      `q:${'['.repeat(9000)}`,
      `${'['.repeat(65)}${']'.repeat(65)}`,
      '["\\ud800"]',
      '{"\\udc00":1}',
    ],
    wanted: /JSON/,
  },
  {
    type: 'bytes',
    good: [
      ['""', "_binary X''"],
      ['"AP8="', "_binary X'00ff'"],
    ],
    bad: ['"AP8"', '"AP9="', '"a b="', '5', '{"$binary":"AP8="}'],
    wanted: /padded base64/,
  },
  {
    type: 'uuid',
    good: [
      [`"${uuid}"`, hex(uuid)],
      [`"${uuid.toUpperCase()}"`, hex(uuid)],
    ],
    bad: [`"{${uuid}}"`, `"${uuid.replaceAll('-', '')}"`, `"${uuid}0"`, '5'],
    wanted: /a UUID/,
  },
  {
    type: 'enum(open, paid)',
    good: [
      ['"open"', hex('open')],
      ['q:paid', hex('paid')],
    ],
    bad: ['"Open"', '"open "', '""', '0', 'q:__proto__'],
    wanted: /one of open, paid/,
  },
];

function given(text: string): GivenValues {
  return text.startsWith('q:')
    ? { kind: 'text', fields: [['x', text.slice(2)]] }
    : body(`{"x":${text}}`);
}

test('each type accepts its values and no others, and a refusal names the parameter', () => {
  for (const { type, good, bad, wanted } of typeCases) {
    const callable = prepared(`${head}-- param x: ${type}\nselect :x;`);
    for (const [text, literal] of good) {
      assert.equal(sql(callable, given(text)), `select ${literal}`, `${type}: ${text}`);
    }
    for (const text of bad) {
      const found = refusal(callable, given(text));
      assert.match(found, wanted, `${type}: ${text}`);
      assert.match(found, /^parameter: x /);
    }
  }
});

test('a text of the pattern takes linear time', () => {
  const callable = prepared(`${head}-- param x: text(/(a+)+b/, 100000)\nselect :x;`);
  assert.match(refusal(callable, body(JSON.stringify({ x: 'a'.repeat(100_000) }))), /matches/);
});

test('absent, null and default are three things', () => {
  const text = `${head}-- param a: int\n-- param b: int = 7\n-- param c: int = null\nselect :a, :b, :c;`;
  const callable = prepared(text);
  assert.equal(sql(callable, body('{"a":1}')), 'select 1, 7, NULL');
  assert.equal(sql(callable, body('{"a":1,"b":2,"c":3}')), 'select 1, 2, 3');
  assert.equal(sql(callable, body('{"a":1,"c":null}')), 'select 1, 7, NULL');
  assert.equal(sql(callable, query('a=1&c=3')), 'select 1, 7, 3');
  assert.equal(refusal(callable, body('{}')), 'parameter: a is missing');
  assert.equal(refusal(callable, body('{"a":null}')), 'parameter: a must not be null');
  assert.equal(refusal(callable, body('{"a":1,"b":null}')), 'parameter: b must not be null');
  assert.match(refusal(callable, query('a=1&c=null')), /c must be a whole number/);
});

test('unknown and repeated parameters are refused by name', () => {
  const callable = prepared(`${head}-- param a: int\nselect :a;`);
  assert.equal(
    refusal(callable, body('{"a":1,"b\\"":2}')),
    'parameter: "b\\"" is not a parameter of the statement',
  );
  assert.match(refusal(callable, body('{"a":1,"__proto__":2}')), /"__proto__" is not a parameter/);
  assert.match(
    refusal(callable, body('{"a":1,"constructor":2}')),
    /"constructor" is not a parameter/,
  );
  assert.match(refusal(callable, query(`a=1&${'b'.repeat(999)}=2`)), /"b{64}" is not a parameter/);
  assert.match(refusal(callable, query('a=1&a=1')), /a is there more than once/);
});

test('a list has one to n items, and a query string repeats its name', () => {
  const callable = prepared(
    `${head}-- param x: list(text(3); 3)\nselect 1 where 'a' in ( :x ) and 'b' not in (:x);`,
  );
  const both = `${hex('a')},${hex("'")}`;
  const expected = `select 1 where 'a' in ( ${both} ) and 'b' not in (${both})`;
  assert.equal(sql(callable, body('{"x":["a","\'"]}')), expected);
  assert.equal(sql(callable, query("x=a&x='")), expected);
  assert.match(sql(callable, query('x=a')), /in \( _utf8mb4 X'61' \)/);
  assert.match(refusal(callable, body('{"x":[]}')), /x must be a list of 1 to 3 values/);
  assert.match(refusal(callable, body('{"x":["a","b","c","d"]}')), /x must be a list of 1 to 3/);
  assert.match(refusal(callable, body('{"x":"a"}')), /x must be a list of 1 to 3 values/);
  assert.match(refusal(callable, body('{"x":["a",null]}')), /x\[1\] must be a text/);
  assert.match(refusal(callable, body('{"x":["a",["b"]]}')), /x\[1\] must be a text/);
  assert.match(refusal(callable, query('x=a&x=abcd')), /x\[1\] must be a text/);
});

test('records are bound as JSON text, and have exactly their fields', () => {
  const callable = prepared(
    `${head}-- param x: records(id: int, price: decimal(9,2), note: text(5), tags: list(enum(a, b); 2), more: json; 2)\nselect :x;`,
  );
  const record =
    '{"more":{"k":[1.10]},"tags":["a"],"note":"\\"","price":1.5,"id":9007199254740993}';
  assert.equal(
    sql(callable, body(`{"x":[${record}]}`)),
    `select ${hex('[{"id":9007199254740993,"price":1.50,"note":"\\"","tags":["a"],"more":{"k":[1.10]}}]')}`,
  );
  assert.equal(sql(callable, body('{"x":[]}')), `select ${hex('[]')}`);
  assert.equal(sql(callable, query('x=[]')), `select ${hex('[]')}`);
  const bad: [text: string, message: RegExp][] = [
    [`[${record},${record},${record}]`, /x must be an array of at most 2 objects/],
    ['{}', /x must be an array of at most 2 objects/],
    ['[5]', /x\[0\] must be an object with the fields id, price, note, tags, more/],
    ['[{"id":1}]', /x\[0\] must be an object .*: price is missing/],
    [`[${record.replace('{', '{"b":1,')}]`, /x\[0\] must be an object .*, and no others/],
    [`[${record.replace('{', '{"__proto__":1,')}]`, /and no others/],
    [`[${record},${record.replace('1.5', '1.555')}]`, /x\[1\]\.price must be a number/],
    [`[${record.replace('"a"', '"c"')}]`, /x\[0\]\.tags\[0\] must be one of a, b/],
    [`[${record.replace('"\\""', 'null')}]`, /x\[0\]\.note must be a text/],
  ];
  for (const [text, message] of bad) {
    assert.match(refusal(callable, body(`{"x":${text}}`)), message);
  }
  assert.match(refusal(callable, query('x=[')), /x must be an array/);
});

test('an object with the members of a number that keeps its digits is an object', () => {
  const callable = prepared(`${head}-- param x: records(id: int, more: json; 1)\nselect :x;`);
  const forged = '{"isLosslessNumber":true,"value":"1},{\\"k\\":2"}';
  const wrong = body(`{"x":[{"id":${forged},"more":1}]}`);
  assert.match(refusal(callable, wrong), /x\[0\]\.id must be a whole number/);
  const records = `[{"id":1,"more":${forged}}]`;
  assert.equal(sql(callable, body(`{"x":${records}}`)), `select ${hex(records)}`);
});

test('a choice inserts the text of the file, and its label decides nothing else', () => {
  const callable = prepared(
    `${head}-- param s: choice(a: x desc | b: y) = b\n-- param n: int\nselect :n from t order by :s limit 5;`,
  );
  assert.equal(sql(callable, body('{"n":1}')), 'select 1 from t order by  y  limit 5');
  assert.equal(
    sql(callable, body('{"n":-2,"s":"a"}')),
    'select -2 from t order by  x desc  limit 5',
  );
  assert.equal(sql(callable, body('{"n":3,"s":"a"}')), 'select 3 from t order by  x desc  limit 5');
  assert.match(refusal(callable, body('{"n":1,"s":"y"}')), /s must be one of a, b/);
  assert.match(refusal(callable, body('{"n":1,"s":null}')), /s must not be null/);
});

test('a claim is a parameter that the client cannot send', () => {
  const callable = prepared(
    `${head}-- param c: int = claims.app.'customer id'\n-- param x: int = 1\nselect :c, :x;`,
  );
  const claims = { app: { 'customer id': 7 } };
  assert.equal(sql(callable, body('{"x":2}'), claims), 'select 7, 2');
  const forged = /parameter: c comes from the credentials and cannot be sent/;
  assert.match(refusal(callable, body('{"c":7}'), claims), forged);
  assert.match(refusal(callable, query('c=7'), claims), forged);
  assert.match(refusal(callable, body('{"c":null}'), claims), forged);
  assert.match(refusal(callable, body('{}')), /^claim missing: .*app\.customer id/);
  assert.match(refusal(callable, body('{}'), { app: [] }), /^claim missing/);
  assert.match(refusal(callable, body('{}'), { app: { 'customer id': 'x' } }), /^claim invalid/);
  assert.match(refusal(callable, body('{}'), { app: { 'customer id': null } }), /^claim invalid/);
  // A number of JSON.parse that may have lost digits.
  const rounded = { app: { 'customer id': 2 ** 53 } };
  assert.match(refusal(callable, body('{}'), rounded), /^claim invalid/);
  const own = checked(callable, body('{}'), claims);
  const others = checked(callable, body('{}'), { app: { 'customer id': 8 } });
  const same = checked(callable, body('{"x":5}'), { ...claims, other: 1 });
  assert.ok(own.ok && others.ok && same.ok);
  assert.notEqual(own.claims, others.claims);
  assert.equal(own.claims, same.claims);
  const inherited = prepared(
    `${head}-- param c: text(9) = claims.'__proto__'.constructor\nselect :c;`,
  );
  assert.match(refusal(inherited, body('{}')), /^claim missing/);
  const document = prepared(`${head}-- param c: json = claims.doc\nselect :c;`);
  assert.match(refusal(document, body('{}'), { doc: null }), /^claim invalid/);
});

test('the values of a column come from the catalogue, and may be unknown', () => {
  let values: ReadonlySet<string> | null = null;
  const asked: string[] = [];
  const callable = prepared(
    `${head}-- param x: enum of orders.status = open\nselect :x;`,
    (table, column) => {
      asked.push(`${table}.${column}`);
      return values;
    },
  );
  assert.match(refusal(callable, body('{"x":"open"}')), /^enum unknown: .*x are not known yet/);
  assert.match(refusal(callable, body('{}')), /^enum unknown/);
  values = new Set(['open', 'paid']);
  assert.equal(sql(callable, body('{"x":"paid"}')), `select ${hex('paid')}`);
  assert.equal(sql(callable, body('{}')), `select ${hex('open')}`);
  assert.match(refusal(callable, body('{"x":"gone"}')), /^parameter: x must be one of the values/);
  assert.ok(asked.every((name) => name === 'orders.status'));
});

test('a batch gets its steps, its answer and counts of items', () => {
  const callable = prepared(`-- name: a :batch
-- for: *
-- param items: records(n: int; 9)
-- param ids: list(int; 9) = null
-- error GONE: 410 It is gone.
-- step: first
-- expect: affected_rows = count(items) else GONE
update t set a = :items;
-- expect: row_count = 1..2
-- answer
select 1;
-- expect: affected_rows = count(ids)
delete from t where id in (:ids);
`);
  const parts = written(callable, body('{"items":[{"n":1},{"n":2}]}'));
  assert.deepEqual(
    parts.map(({ step, expect, isAnswer }) => [step, expect, isAnswer]),
    [
      ['first', { of: 'affected_rows', min: 2, max: 2, code: 'GONE' }, false],
      [null, { of: 'row_count', min: 1, max: 2, code: null }, true],
      [null, { of: 'affected_rows', min: 0, max: 0, code: null }, false],
    ],
  );
  assert.equal(parts[2]?.sql, 'delete from t where id in (NULL)');
  assert.equal(written(callable, body('{"items":[],"ids":[4,5]}'))[2]?.expect?.max, 2);
});

test('literals never merge with their neighbours', () => {
  const callable = prepared(
    `${head}-- param n: int\n-- param s: text(9)\nselect 5-:n, -:n, 5*:n, :n collate binary, :s'b', 'a':s, :n*2;`,
  );
  assert.equal(
    sql(callable, body('{"n":-3,"s":"x"}')),
    `select 5-(-3), -(-3), 5* -3, (-3) collate binary, ${hex('x')} 'b', 'a' ${hex('x')}, -3 *2`,
  );
  assert.equal(
    sql(callable, body('{"n":3,"s":"x"}')),
    `select 5-(3), -(3), 5* 3, 3 collate binary, ${hex('x')} 'b', 'a' ${hex('x')}, 3 *2`,
  );
});

test('a text that would be longer than the server takes is not built', () => {
  const callable = prepared(`${head}-- param x: list(text(999); 9)\nselect 1 in (:x);`);
  const found = checked(callable, body(JSON.stringify({ x: ['a'.repeat(100), 'b'] })));
  assert.ok(found.ok);
  const size = allAtOnce(writeCall(callable, found.values, plenty, builtInEverywhere));
  const bytes = size.ok ? (size.parts[0]?.sql.length ?? 0) : 0;
  const within = (max: number) =>
    allAtOnce(writeCall(callable, found.values, max, builtInEverywhere)).ok;
  assert.deepEqual([within(bytes - 1), within(50), within(bytes + 10)], [false, false, true]);
});

test('the analysis is that of the text with its values', () => {
  const callable = prepared(
    `${head}-- param s: choice(a: id | b: f(id)) = a\n-- param n: int = null\nselect x, :n from t where (:n is null or y > :n) order by :s;`,
  );
  for (const text of ['{}', '{"n":-5}', '{"s":"b","n":1}', '{"s":"b"}']) {
    const [part] = written(callable, body(text));
    assert.ok(part !== undefined);
    const direct = analyse(part.sql);
    assert.deepEqual(part.analysis.classification, direct.classification, text);
    assert.deepEqual(part.analysis.statements, direct.statements, text);
    assert.equal(part.analysis.sql, part.sql);
  }
});

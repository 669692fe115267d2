// The parser that judges the gateway's JSON: what it must accept, keep and refuse.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyCharacter, fc } from '../../support/property.ts';
import { at, JsonNumber, type JsonValue, parseStrictJson } from '../../support/strict-json.ts';

test('keeps every digit of a number', () => {
  for (const text of ['0', '-0', '18446744073709551615', '1.50', '-0.0e+00', '1E400', '2e-1']) {
    assert.deepEqual(parseStrictJson(`[${text}]`), [new JsonNumber(text)]);
  }
});

test('refuses documents outside of RFC 8259', () => {
  const wrong = [
    ...[
      '',
      ' ',
      '[',
      '[1',
      '[1,',
      '[1,]',
      '[,1]',
      '[1 2]',
      '{',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,}',
    ],
    ...[
      '01',
      '+1',
      '1.',
      '.5',
      '1e',
      '1e+',
      '-',
      '--1',
      '0x1',
      'NaN',
      'Infinity',
      'nul',
      'True',
      '00',
    ],
    ...['"', '"\\', '"\\x"', '"\\u12"', '"\\u12g4"', '"\t"', '"\u0000"', "'a'", '{a:1}', '{1:1}'],
    ...[
      '1 2',
      '[]]',
      '{}{}',
      '// c',
      '[1]//',
      '\ufeff[]',
      '"\\ud800"',
      '"\\udc00"',
      '"\\ud800\\u0041"',
    ],
    ...['{"a":1,"a":2}', '{"a" 1}', '[1;2]', '\u00a01'],
  ];
  for (const text of wrong) {
    assert.throws(() => parseStrictJson(text), SyntaxError, JSON.stringify(text));
  }
  assert.throws(() => parseStrictJson(Buffer.from([0x22, 0xff, 0x22])), SyntaxError);
});

test('reads every document that JSON.stringify writes, in every indentation', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: anyCharacter }), fc.nat(4), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.deepEqual(toJavaScript(parseStrictJson(Buffer.from(text))), JSON.parse(text));
    }),
    { numRuns: 300 },
  );
});

test('treats __proto__ as a name like others, and finds values by path', () => {
  const value = parseStrictJson('{"__proto__":[{"a":"\\u00e9\\n\\ud83d\\ude00"}]}');
  assert.equal(at(value, '__proto__', 0, 'a'), 'é\n😀');
  assert.throws(() => at(value, 'a'), /nothing at/);
});

test('reads a document of 20 MB in one piece', () => {
  const row = JSON.stringify(['x'.repeat(200), 123456, null, 'é'.repeat(100)]);
  const rows = Math.ceil(20e6 / row.length);
  const document = Buffer.from(`[${`${row},`.repeat(rows - 1)}${row}]`);
  assert.equal((parseStrictJson(document) as JsonValue[]).length, rows);
});

function toJavaScript(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return Number(value.text);
  if (Array.isArray(value)) return value.map(toJavaScript);
  if (!(value instanceof Map)) return value;
  return Object.fromEntries([...value].map(([name, inner]) => [name, toJavaScript(inner)]));
}

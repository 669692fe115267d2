// The promises of decoding a request to /db: DBSlayer's URL rules, exact digits, a 400 for everything malformed.
import assert from 'node:assert/strict';
import test from 'node:test';
import { isLosslessNumber } from 'lossless-json';
import { failures } from '../../../../../src/shared/failure-codes.ts';
import { allAtOnce } from '../../../../../src/shared/pieces.ts';
import {
  type DbRequest,
  type Decoded,
  decodeDb,
  parseDbQueryString,
} from '../../../../../src/worker/endpoints/db/request.ts';
import { parseBody } from '../../../../../src/worker/endpoints/json-text.ts';
import { rulesOf } from '../../../../../src/worker/request/compat.ts';
import { anyCharacter, cases, fc } from '../../../../support/property.ts';

const world = { usable: ['world'], served: ['world'] };
const get = (raw: string, rules = rulesOf.off) =>
  decodeDb(allAtOnce(parseDbQueryString(raw, rules, false)), world, rules);
const post = (text: string | Buffer) => {
  const parsed = allAtOnce(parseBody(Buffer.from(text as string), false, true));
  return decodeDb(parsed, world, rulesOf.off);
};

function request(decoded: Decoded): DbRequest {
  assert.ok(decoded.ok, JSON.stringify(decoded));
  return decoded.request;
}

function code(decoded: Decoded): string {
  assert.ok(!decoded.ok, JSON.stringify(decoded));
  assert.equal(failures[decoded.failure.code].status, 400);
  return decoded.failure.code;
}

const sqlOf = (raw: string) => request(get(`{"SQL":"${raw}"}`)).sql;

/** The result of JavaScript's old escape() for a text. */
function oldEscape(text: string): string {
  let out = '';
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit > 0xff) out += `%u${unit.toString(16).toUpperCase().padStart(4, '0')}`;
    else if (/[\w@*_+\-./]/.test(text.charAt(at)) && text.charAt(at) !== '+')
      out += text.charAt(at);
    else out += `%${unit.toString(16).padStart(2, '0')}`;
  }
  return out;
}

test('reads a request as DBSlayer did, from the URL', () => {
  assert.deepEqual(request(get('{%22SQL%22:%22select+1%20%2B+1%22}')), {
    section: null,
    sql: 'select 1 + 1',
    params: null,
    timeoutMs: null,
    readOnly: false,
    exactNumbersAsStrings: false,
    rollbackOnError: false,
    metadata: [],
  });
  assert.equal(sqlOf('a=1&b=2;c?d#e'), 'a=1&b=2;c?d#e');
});

test('leaves malformed percent sequences as they are', () => {
  for (const raw of [
    '100%',
    '%zz',
    '%a',
    '%u12',
    '%u12g4',
    '%',
    '%%',
    '%ud800',
    '%udc00x',
    '%ud800%u0041',
  ]) {
    assert.equal(sqlOf(raw), raw.replace('%u0041', 'A'), raw);
  }
  assert.equal(sqlOf('%25%41%'), '%A%');
  assert.equal(sqlOf('%%41'), '%A');
});

test('reads UTF-8, Latin-1 and %u, however they are mixed', () => {
  assert.equal(sqlOf('%C3%A9'), 'é');
  assert.equal(sqlOf('%E9'), 'é');
  assert.equal(sqlOf('\xc3\xa9'), 'é');
  assert.equal(sqlOf('\xe9%20%E8'), 'é è');
  assert.equal(sqlOf('%u20AC'), '€');
  assert.equal(sqlOf('%uD83D%uDE00'), '😀');
  assert.equal(sqlOf('%E9%u20AC%uD83D%uDE00+%C3'), 'é€😀 Ã');
  assert.equal(sqlOf('%E9%ud800%udc'), 'é%ud800%udc');
  assert.equal(sqlOf('%C3%A9%u20AC'), 'é€');
});

test('brings any text through the URL, encoded the new way, the old way or only as far as needed', () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: fc.constantFrom('%', '+', 'u', '2', '5', 'é', '"', ' ', '€', '😀') }),
  );
  fc.assert(
    fc.property(text, (sql) => {
      fc.pre(sql.trim() !== '');
      const json = JSON.stringify({ SQL: sql });
      assert.equal(request(get(encodeURIComponent(json))).sql, sql);
      assert.equal(request(get(encodeURIComponent(json).replaceAll('%20', '+'))).sql, sql);
      const bytes = Buffer.from(json)
        .toString('latin1')
        .replaceAll('%', '%25')
        .replaceAll('+', '%2B');
      assert.equal(request(get(bytes)).sql, sql);
      assert.equal(request(post(json)).sql, sql);
    }),
    { numRuns: cases(400) },
  );
  const escaped = fc.string({ unit: fc.constantFrom('a', 'é', 'ÿ', '€', '😀', '%', '+', ' ') });
  fc.assert(
    fc.property(escaped, (sql) => {
      fc.pre(sql.trim() !== '');
      assert.equal(request(get(oldEscape(JSON.stringify({ SQL: sql })))).sql, sql);
    }),
  );
});

test('refuses a key that differs from a known one only in the case of its letters', () => {
  for (const key of ['read_only', 'Read_Only', 'sql', 'Params', 'server_version', 'format']) {
    const refused = post(JSON.stringify({ SQL: 'select 1', [key]: null }));
    assert.equal(code(refused), 'BAD_KEY', key);
    assert.match(JSON.stringify(refused), new RegExp(`${key.toUpperCase()} must be .* capitals`));
  }
  assert.equal(request(post('{"SQL":"select 1","readonly":1,"toUpperCase":2}')).readOnly, false);
});

test('keeps every digit of a parameter', () => {
  const digits = fc.stringMatching(/^-?(0|[1-9]\d{0,40})(\.\d{1,30})?([eE][+-]?\d{1,3})?$/);
  fc.assert(
    fc.property(fc.array(digits, { minLength: 1, maxLength: 5 }), (numbers) => {
      const { params } = request(post(`{"SQL":"x","PARAMS":[${numbers.join(' ,')}]}`));
      const kept = (params as unknown[]).map((value) =>
        isLosslessNumber(value) ? value.value : String(value),
      );
      assert.deepEqual(kept, numbers);
    }),
    { numRuns: cases(400) },
  );
  const named = request(
    post('{"PARAMS":{"a":1.10,"b":{"c":"1.10"}},"SQL":"x","PARAMS":{"a":9007199254740993}}'),
  ).params;
  assert.deepEqual(Object.keys(named as object), ['a']);
  assert.equal(String((named as { a: unknown }).a), '9007199254740993');
});

test('takes every key of the contract, and lets unknown ones pass', () => {
  const all = {
    SQL: 'select 1',
    PARAMS: { a: 'b' },
    TIMEOUT: 1500,
    READ_ONLY: true,
    NUMBERS: 'string',
    ROLLBACK_ON_ERROR: true,
    SERVER: 'world',
    CLIENT_INFO: true,
    STAT: true,
    SERVER_NAME: false,
    SOMETHING_ELSE: [1],
  };
  assert.deepEqual(request(post(JSON.stringify(all))), {
    section: 'world',
    sql: 'select 1',
    params: { a: 'b' },
    timeoutMs: 1500,
    readOnly: true,
    exactNumbersAsStrings: true,
    rollbackOnError: true,
    metadata: ['STAT', 'CLIENT_INFO'],
  });
  assert.equal(request(post('{"STAT":true}')).sql, null);
  assert.equal(request(post('{"STAT":true,"SQL":" "}')).sql, null);
  assert.equal(request(post('\ufeff{"SQL":"a"}')).sql, 'a');
});

test('refuses a wrong type, a missing SQL and another server', () => {
  const wrong: [string, string][] = [
    ['{"SQL":1}', 'BAD_KEY'],
    ['{"SQL":null}', 'BAD_KEY'],
    ['{"SQL":"\\ud800"}', 'BAD_KEY'],
    ['{"SQL":"a","PARAMS":"b"}', 'BAD_KEY'],
    ['{"SQL":"a","PARAMS":null}', 'BAD_KEY'],
    ['{"SQL":"a","TIMEOUT":0}', 'BAD_KEY'],
    ['{"SQL":"a","TIMEOUT":-1}', 'BAD_KEY'],
    ['{"SQL":"a","TIMEOUT":1e999}', 'BAD_KEY'],
    ['{"SQL":"a","TIMEOUT":"5"}', 'BAD_KEY'],
    ['{"SQL":"a","READ_ONLY":1}', 'BAD_KEY'],
    ['{"SQL":"a","NUMBERS":"exact"}', 'BAD_KEY'],
    ['{"SQL":"a","ROLLBACK_ON_ERROR":"true"}', 'BAD_KEY'],
    ['{"SQL":"a","STAT":1}', 'BAD_KEY'],
    ['{"SQL":"a","SERVER":"World"}', 'WRONG_SERVER'],
    ['{"SQL":"a","SERVER":null}', 'WRONG_SERVER'],
    ['{}', 'NO_SQL'],
    ['{"SQL":""}', 'NO_SQL'],
    ['{"SQL":" \\n"}', 'NO_SQL'],
    ['{"STAT":false}', 'NO_SQL'],
    ['{"__proto__":{"SQL":"a"}}', 'NO_SQL'],
    ['', 'BAD_JSON'],
    ['[]', 'BAD_JSON'],
    ['null', 'BAD_JSON'],
    ['"a"', 'BAD_JSON'],
    ['{"SQL":"a"', 'BAD_JSON'],
    ["{'SQL':'a'}", 'BAD_JSON'],
    ['{"SQL":"a","PARAMS":[01]}', 'BAD_JSON'],
    [`{"SQL":"a","PARAMS":${'['.repeat(65)}${']'.repeat(65)}}`, 'BAD_JSON'],
    ['['.repeat(1_000_000), 'BAD_JSON'],
    ['{"a":'.repeat(200_000), 'BAD_JSON'],
  ];
  for (const [text, expected] of wrong) {
    assert.equal(code(post(text)), expected, text.slice(0, 80));
    assert.equal(code(get(encodeURIComponent(text))), expected, text.slice(0, 80));
  }
  assert.equal(code(post(Buffer.from([0x7b, 0xe9, 0x7d]))), 'BAD_ENCODING');
});

test('is not harmed by __proto__', () => {
  const { params } = request(
    post('{"SQL":"a","__proto__":{"READ_ONLY":true},"PARAMS":{"__proto__":1.0}}'),
  );
  assert.ok(Object.hasOwn(params as object, '__proto__'));
  assert.equal(Object.getPrototypeOf(params), Object.prototype);
  assert.equal(({} as Record<string, unknown>).READ_ONLY, undefined);
});

test('quotes nothing of the request in its refusals', () => {
  const decoded = get('{"SQL":secret}');
  assert.ok(!decoded.ok && !decoded.failure.message.includes('secret'));
});

test('never throws on hostile input', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      assert.equal(typeof post(Buffer.from(bytes)).ok, 'boolean');
      assert.equal(typeof get(Buffer.from(bytes).toString('latin1')).ok, 'boolean');
    }),
    { numRuns: cases(600) },
  );
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"SQL"',
    ':',
    ',',
    '1.0',
    '-',
    '1e5',
    '"',
    '\\',
    '"PARAMS"',
    '%',
    '%u',
    'd8',
    '00',
    '+',
    'true',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      assert.equal(typeof get(pieces.join('')).ok, 'boolean');
    }),
    { numRuns: cases(600) },
  );
});

test('compat: any text means the same whether its control characters are escaped or not', () => {
  const text = fc.string({
    unit: fc.constantFrom('\t', '\n', '\u0000', '\u001f', '"', '\\', '{', 'é', 'n'),
  });
  fc.assert(
    fc.property(text, (sql) => {
      const escaped = JSON.stringify({ SQL: `-${sql}`, PARAMS: [sql] });
      const raw = escaped.replace(/\\\\|\\t|\\n|\\u00[01][0-9a-f]/g, (found) =>
        found === '\\\\' ? found : (JSON.parse(`"${found}"`) as string),
      );
      const loose = get(encodeURIComponent(raw), rulesOf.dbslayer);
      assert.deepEqual(loose, get(encodeURIComponent(escaped)));
    }),
  );
});

test('compat: a control character behind a backslash, or outside of strings, is no JSON', () => {
  for (const text of ['{"SQL":"a\\\n"}', '{"SQL":"a"\u0001}', '{"SQL\\\t":"a"}']) {
    const decoded = get(encodeURIComponent(text), rulesOf.dbslayer);
    assert.equal(code(decoded), 'BAD_JSON');
  }
});

test('compat: a key that is null is absent, one named __proto__ is ordinary', () => {
  const raw = encodeURIComponent(
    '{"SQL":"a","PARAMS":null,"TIMEOUT":null,"__proto__":{"STAT":true}}',
  );
  const { metadata, params, sql } = request(get(raw, rulesOf.dbslayer));
  assert.deepEqual({ metadata, params, sql }, { metadata: [], params: null, sql: 'a' });
});

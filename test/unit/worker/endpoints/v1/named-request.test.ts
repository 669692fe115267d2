// The text after `?` of a call: names and values in order, fields of the gateway's own, and what is no text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allAtOnce } from '../../../../../src/shared/pieces.ts';
import { decodeNamedQuery } from '../../../../../src/worker/endpoints/v1/named-request.ts';

const sections = { usable: ['world'], served: ['world', 'other'] };
const decode = (text: string) => allAtOnce(decodeNamedQuery(text, sections));
const fieldsOf = (text: string) => {
  const decoded = decode(text);
  if (!decoded.ok) return decoded.failure.code;
  const { given } = decoded.request;
  return given.kind === 'text' ? given.fields.map((field) => field.join('=')) : given.kind;
};

test('values are decoded as forms encode them, repeated names stay apart, and empty pairs are nothing', () => {
  assert.deepEqual(fieldsOf(''), []);
  assert.deepEqual(fieldsOf('&a=1&&b=x+y%2B%26%3D&a=&c&'), ['a=1', 'b=x y+&=', 'a=', 'c=']);
  assert.deepEqual(fieldsOf('a=%C3%A4%F0%9F%98%80=b'), ['a=ä😀=b']);
  assert.deepEqual(fieldsOf('%61=1'), ['a=1']);
});

test('bytes that are no UTF-8, and a % without digits, are refused', () => {
  for (const text of ['a=%ff', 'a=%', 'a=%4', 'a=%u0041', '%zz=1', 'a=\u00e4', 'a=%ED%A0%80']) {
    assert.equal(fieldsOf(text), 'BAD_ENCODING', text);
  }
});

test('_section and _timeout_ms are the fields of a POST, once, and no other name begins like them', () => {
  const decoded = decode('_timeout_ms=1500.5&_section=world&a=1');
  assert.ok(decoded.ok);
  assert.deepEqual([decoded.request.timeoutMs, decoded.request.section], [1500.5, 'world']);
  const refused = {
    '_timeout_ms=1&_timeout_ms=2': 'BAD_KEY',
    '_timeout_ms=0': 'BAD_KEY',
    '_timeout_ms=1e3': 'BAD_KEY',
    '_timeout_ms=': 'BAD_KEY',
    '_timeout_ms=1.2.3': 'BAD_KEY',
    '_section=nowhere': 'WRONG_SERVER',
    '_section=other': 'FORBIDDEN',
    '_transaction=x': 'UNKNOWN_FIELD',
    '_=1': 'UNKNOWN_FIELD',
  };
  for (const [text, code] of Object.entries(refused)) assert.equal(fieldsOf(text), code, text);
});

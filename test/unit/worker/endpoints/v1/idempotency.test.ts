// What an Idempotency-Key stands for: its section, and every part of the request that asks for something.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkKey, keyOf } from '../../../../../src/worker/endpoints/v1/idempotency.ts';

const table = { idempotencyTable: 'request_keys' };
const usual = { method: 'POST', path: '/v1/query', fields: { sql: 'insert into t values (1)' } };

function keyFor(section: string, header: string, changed: Partial<typeof usual> | object = {}) {
  const key = keyOf({ section, ...table }, header, () => ({ ...usual, ...changed }));
  if (key === null || !('id' in key)) return assert.fail(JSON.stringify(key));
  return key;
}

test('the same key of another section is another key, wherever one ends and the other begins', () => {
  const { id } = keyFor('shop', 'key');
  assert.equal(keyFor('shop', 'key').id, id);
  for (const [section, header] of [
    ['ship', 'key'],
    ['shop2', 'key'],
    ['sho', 'pkey'],
    ['shopk', 'ey'],
    ['shop', 'Key'],
  ] as const) {
    assert.notEqual(keyFor(section, header).id, id, `${section} ${header}`);
  }
});

test('method, path and every field make another request; time and retries do not', () => {
  const { request } = keyFor('shop', 'key');
  for (const changed of [
    { method: 'QUERY' },
    { path: '/v1/batch' },
    { fields: { sql: 'insert into t values (2)' } },
    { fields: { ...usual.fields, params: [] } },
    { fields: { ...usual.fields, show_warnings: true } },
  ]) {
    assert.notEqual(keyFor('shop', 'key', changed).request, request, JSON.stringify(changed));
  }
  const slower = { fields: { ...usual.fields, timeout_ms: 5, retry: 1, params: null } };
  assert.equal(keyFor('shop', 'key', slower).request, request);
});

test('a key has 1 to 255 visible characters', () => {
  assert.equal(checkKey('x'.repeat(255), true), null);
  for (const header of ['', 'x'.repeat(256), 'a b', 'a\tb', 'ä']) {
    assert.equal(checkKey(header, true)?.code, 'IDEMPOTENCY_KEY', header);
  }
  assert.equal(checkKey('x', false)?.code, 'IDEMPOTENCY_OFF');
  assert.equal(checkKey(undefined, false), null);
});

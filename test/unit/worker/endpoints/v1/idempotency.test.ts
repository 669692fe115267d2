// The identity of a request with an Idempotency-Key: its section, and every part of it that changes its meaning.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { createCaller, defaultCaller } from '../../../../../src/shared/clients/caller.ts';
import { defaultClient } from '../../../../../src/shared/clients/client.ts';
import { allAtOnce } from '../../../../../src/shared/pieces.ts';
import { parseObject } from '../../../../../src/worker/endpoints/json-text.ts';
import { checkKey, keyOf } from '../../../../../src/worker/endpoints/v1/idempotency.ts';

const table = { idempotencyTable: 'request_keys' };
const usual = {
  method: 'POST',
  path: '/v1/query',
  fields: { sql: 'insert into t values (1)' },
  caller: defaultCaller,
};

function keyFor(section: string, header: string, changed: Partial<typeof usual> | object = {}) {
  const { method, path, fields, caller } = { ...usual, ...changed };
  const call = { request: { method }, head: { path }, record: { caller } };
  const keyed = allAtOnce(keyOf({ section, ...table }, header, call, { exact: () => fields }));
  if (!keyed.ok || keyed.key === null) return assert.fail(JSON.stringify(keyed));
  return keyed.key;
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

test('the same key of another client, or of another user of it, is another key', () => {
  const web = { ...defaultClient, name: 'web' };
  const owners = [
    defaultCaller,
    createCaller(web),
    createCaller(web, 'one'),
    createCaller(web, 'two'),
    createCaller({ ...web, name: 'app' }, 'one'),
  ];
  const ids = owners.map((caller) => keyFor('shop', 'key', { caller }).id);
  assert.equal(new Set(ids).size, owners.length);
  assert.equal(keyFor('shop', 'key', { caller: createCaller(web, 'one') }).id, ids[2]);
});

test('a key of the client default is hashed as it was before there were clients', () => {
  const sum = createHash('sha256').update('4:shop').update('3:key').digest('hex');
  assert.equal(keyFor('shop', 'key').id, sum);
});

test('a request is hashed as in earlier versions: gateways of both may share a table', () => {
  const body = `{"timeout_ms":5,"statements":[
    {"sql":"insert into t values (?, :ä, ?)","params":[1.50,"ß\\ud83d\\ude00",null,[true,{"$binary":"AAE="}]]},
    {"params":{"b":-0,"a":12345678901234567890},"sql":"x","expect":{"affected_rows":{"max":2,"min":1}}}],
    "isolation":"serializable","section":null}`;
  const parsed = parseObject(body);
  assert.ok(parsed.ok);
  assert.equal(
    keyFor('shop', 'key', { path: '/v1/batch', fields: parsed.exact() }).request,
    '0c0c1cd0b299127cdf797377678878389b2b48903f9de4ac5e09a625cf606af7',
  );
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

test('the hash of a request never changes, also with lists and objects in it: stored keys must be found again', () => {
  const write = {
    sql: 'insert into t values (?, ?)',
    params: [1, null, { b: [true, 'ü'], a: 0.5 }],
    expect: { affected_rows: { min: 1, max: null } },
  };
  const fields = { statements: [write], isolation: null, timeout_ms: 5 };
  const { id, request } = keyFor('shop', 'key', { path: '/v1/batch', fields });
  assert.equal(id, '0270e0305525f54239459cf058a498659fb9e2bbe5b1519ea375272316839696');
  assert.equal(request, '28903fc54906a7cd4fc1d9b0a1bc13654334fde3a3f8fcc56d5d75b455309814');
});

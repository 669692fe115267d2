// The keys of MySQL servers in a file: those that are taken, and those that are refused.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { findKey, parseServerKeys } from '../../../src/shared/server-keys.ts';

const rsa = (modulusLength = 2048) => generateKeyPairSync('rsa', { modulusLength });
const [one, two] = [rsa(), rsa()].map(({ publicKey }) => ({
  spki: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  pkcs1: publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
})) as [{ spki: string; pkcs1: string }, { spki: string; pkcs1: string }];

test('a file may hold the keys of several servers, in both forms', () => {
  assert.deepEqual(parseServerKeys(one.spki), [one.spki]);
  assert.deepEqual(parseServerKeys(`# first\n${one.pkcs1}\nsecond:\n${two.spki}`), [
    one.spki,
    two.spki,
  ]);
});

test('a key is found whatever its form, and no other one is', () => {
  assert.equal(findKey(one.pkcs1, [two.spki, one.spki]), one.spki);
  assert.equal(findKey(one.spki, [two.spki]), null);
  assert.equal(findKey('no key', [one.spki]), null);
});

test('a file without a usable key is reported with the reason', () => {
  const { privateKey } = rsa();
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  const pem = { type: 'spki', format: 'pem' } as const;
  for (const [text, problem] of [
    ['', /holds no public key/],
    [privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), /holds no public key/],
    [elliptic.export(pem).toString(), /no RSA key/],
    [rsa(1024).publicKey.export(pem).toString(), /shorter than 2048 bits/],
    [`${one.spki.slice(0, 120)}\n-----END PUBLIC KEY-----`, /broken/],
  ] as const) {
    assert.match(String(parseServerKeys(text)), problem);
  }
});

// A JWK set holds public keys for signatures, each with its algorithm and name, or every fault is reported.
import assert from 'node:assert/strict';
import { generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import { parseJwtKeys } from '../../../../src/shared/config/jwt-keys.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed = generateKeyPairSync('ed25519');
const jwk = (key: KeyObject): JsonWebKey => key.export({ format: 'jwk' });
const rs256 = { ...jwk(rsa.publicKey), alg: 'RS256', kid: 'r' };
const ps256 = { ...jwk(rsa.publicKey), alg: 'PS256', kid: 'p' };
const es256 = { ...jwk(ec.publicKey), alg: 'ES256', kid: 'e' };
const eddsa = { ...jwk(ed.publicKey), alg: 'EdDSA', kid: 'o' };
const { kid: _, ...unnamed } = rs256;

const parse = (...keys: readonly object[]) => parseJwtKeys(JSON.stringify({ keys }));

function faultsOf(text: string): readonly string[] {
  const parsed = parseJwtKeys(text);
  assert.ok(!parsed.ok, 'it is valid');
  return parsed.faults.map(({ key, line, problem }) => `${key ?? '-'} ${line ?? '-'}: ${problem}`);
}

test('takes keys of the four algorithms, with the members that verification needs', () => {
  const parsed = parse(
    { ...rs256, use: 'sig', x5c: ['x'], key_ops: ['verify'] },
    ps256,
    es256,
    eddsa,
  );
  assert.deepEqual(parsed, { ok: true, keys: [rs256, ps256, es256, eddsa] });
});

test('takes one key without a name', () => {
  assert.deepEqual(parse(unnamed), { ok: true, keys: [unnamed] });
});

test('leaves out keys for encryption, which providers publish beside the others', () => {
  const other = { ...jwk(rsa.publicKey), alg: 'RSA-OAEP', use: 'enc', kid: 'x' };
  assert.deepEqual(parse(other, unnamed), { ok: true, keys: [unnamed] });
  assert.deepEqual(faultsOf(JSON.stringify({ keys: [other] })), ['- -: has no key for signatures']);
});

const small = jwk(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey);
const { n: __, ...noModulus } = rs256;
const { alg: ___, ...noAlgorithm } = rs256;
const algorithms = 'has an `alg` that is none of RS256, PS256, ES256, EdDSA';
const secret = 'is a private or symmetric key: the set must hold public keys only';

const faulty: readonly (readonly [key: unknown, problem: string])[] = [
  ['x', 'is no JSON object'],
  [null, 'is no JSON object'],
  [noAlgorithm, 'does not state its `alg`'],
  [{ ...rs256, alg: 'RS512' }, algorithms],
  [{ ...rs256, alg: 'none' }, algorithms],
  [{ ...rs256, alg: 'toString' }, algorithms],
  [{ kty: 'oct', alg: 'HS256', k: 'c2VjcmV0' }, secret],
  [{ ...jwk(ec.privateKey), alg: 'ES256', kid: 'e' }, secret],
  [{ ...jwk(rsa.privateKey), alg: 'RS256', use: 'enc' }, secret],
  [{ ...rs256, use: 'other' }, 'has another `use` than `sig`'],
  [{ ...rs256, key_ops: ['sign'] }, 'has `key_ops` without `verify`'],
  [{ ...rs256, kid: 7 }, 'has a `kid` that is not text'],
  [{ ...rs256, kid: '' }, 'has a `kid` that is not text'],
  [{ ...es256, alg: 'RS256' }, 'has the wrong type: RS256 needs the `kty` RSA'],
  [{ ...es256, crv: 'P-384' }, 'has the wrong type: ES256 needs the `kty` EC and the `crv` P-256'],
  [noModulus, 'is not a valid public key'],
  [{ ...es256, x: es256.y }, 'is not a valid public key'],
  [{ ...small, alg: 'RS256' }, 'has fewer than 2048 bits'],
];

test('reports each fault of a key by its place in the set and its name', () => {
  for (const [key, problem] of faulty) {
    const [fault = '', ...others] = faultsOf(JSON.stringify({ keys: [eddsa, key] }));
    assert.match(fault, /^key 2( \(.*\))? -: /);
    assert.equal(fault.replace(/^.*? -: /, ''), problem);
    assert.deepEqual(others, []);
  }
});

test('several keys need names of their own', () => {
  assert.deepEqual(faultsOf(JSON.stringify({ keys: [eddsa, unnamed, { ...es256, kid: 'o' }] })), [
    'key 2 -: has no `kid`, which is needed where there are several keys',
    'key 3 (o) -: has the `kid` of a key before it',
  ]);
});

test('names the line of a fault of JSON', () => {
  assert.deepEqual(faultsOf('{"keys":\n [{}'), ['- 2: is not JSON']);
  assert.deepEqual(faultsOf(''), ['- -: is not JSON']);
  for (const text of ['[]', '{}', 'null', '{"keys":{}}'])
    assert.deepEqual(faultsOf(text), ['- -: is no JWK set: {"keys":[…]}']);
});

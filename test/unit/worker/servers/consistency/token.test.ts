// The consistency token as text: read as it was written, rejected if it is not signed by these gateways, never longer than promised.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSets } from '../../../../../src/shared/servers/gtid-sets.ts';
import {
  decodeToken,
  encodeToken,
  parseEvents,
  type SeenPosition,
  type Token,
} from '../../../../../src/worker/servers/consistency/token.ts';
import { fc } from '../../../../support/property.ts';

const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const key = Buffer.alloc(32, 'a key');
const otherKey = Buffer.alloc(32, 'another');

const uint32 = fc.integer({ min: 0, max: 4_294_967_295 });
const uint64 = fc.bigInt({ min: 1n, max: 18_446_744_073_709_551_615n });
const mariadb: fc.Arbitrary<SeenPosition> = fc
  .array(fc.tuple(uint32, uint32, uint64), { minLength: 1, maxLength: 20 })
  .map((events) => ({
    kind: 'mariadb',
    events: parseEvents(events.map((event) => event.join('-')).join()) ?? new Map(),
  }));
const sets = fc
  .array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 1, maxLength: 20 })
  .map((of) => parseSets(`${uuid}:${of.join(':')}`) ?? new Map());
const mysql: fc.Arbitrary<SeenPosition> = fc
  .tuple(sets, fc.oneof(fc.constant(new Map()), sets))
  .map(([executed, owned]) => ({ kind: 'mysql', executed, owned }));
const galera: fc.Arbitrary<SeenPosition> = fc
  .bigInt({ min: 0n, max: 9_223_372_036_854_775_807n })
  .map((committed) => ({ kind: 'galera', cluster: uuid, committed }));
const tokens: fc.Arbitrary<Token> = fc
  .tuple(fc.string({ maxLength: 20 }), fc.oneof(mariadb, mysql, galera))
  .map(([server, position]) => ({ server, position }));

test('a written token is read back, signed or not, and fits into a header', () => {
  fc.assert(
    fc.property(tokens, fc.constantFrom(null, key), (token, signedBy) => {
      const text = encodeToken(token, signedBy);
      assert.ok(text !== null);
      assert.match(text, /^[\w.-]+$/);
      assert.deepEqual(decodeToken(text, signedBy), token);
    }),
  );
});

test('a token that is not signed with this key is rejected, whatever was changed in it', () => {
  fc.assert(
    fc.property(tokens, fc.nat(), (token, at) => {
      const text = encodeToken(token, key) ?? '';
      const place = at % text.length;
      const other = text[place] === 'A' ? 'B' : 'A';
      assert.equal(decodeToken(text.slice(0, place) + other + text.slice(place + 1), key), null);
      assert.equal(decodeToken(text, otherKey), null);
      assert.equal(decodeToken(encodeToken(token, null) ?? '', key), null);
    }),
  );
});

test('nonsense is rejected', () => {
  fc.assert(fc.property(fc.string(), (text) => decodeToken(text, null) === null));
  const of = (payload: unknown) =>
    `1.${Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)).toString('base64url')}`;
  for (const payload of [
    '{',
    {},
    [],
    ['m'],
    ['m', 's', "0-1-5');drop table t;--"],
    ['m', 's', '0-1'],
    ['m', 's', '0-1-123456789012345678901'],
    ['s', 's', 'x', ''],
    ['s', 's', `${uuid}:1`, "'"],
    ['g', 's', "' or 1", '5'],
    ['g', 's', uuid, '-1'],
    ['q', 's', '0-1-5'],
    ['m', 5, '0-1-5'],
    ['m', 's', ['0-1-5']],
  ]) {
    const token = decodeToken(of(payload), null);
    const isEmpty = token?.position.kind === 'mariadb' && token.position.events.size === 0;
    assert.ok(token === null || isEmpty, JSON.stringify(payload));
  }
});

test('two tokens in one header are rejected', () => {
  const text = encodeToken(
    { server: 's', position: { kind: 'galera', cluster: uuid, committed: 1n } },
    null,
  );
  assert.equal(decodeToken(`${text}, ${text}`, null), null);
});

test('a token that would be longer than 4 KiB is not made, and a longer text is not read', () => {
  const many = Array.from({ length: 400 }, (_, index) => `${index}-1-1000000000`).join();
  const position = { kind: 'mariadb', events: parseEvents(many) ?? new Map() } as const;
  assert.equal(encodeToken({ server: 's', position }, null), null);
  assert.equal(decodeToken(`1.${'A'.repeat(4096)}`, null), null);
});

// The claims that a statement binds, as what decides whose a request is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJsonObject } from '../../../../src/shared/named/json-value.ts';
import { claimsOf, hasClaims } from '../../../../src/shared/named/own-claims.ts';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';

const parsed = parseFile(
  `-- name: mine :many
-- for: *
-- param a: int = claims.org.id
-- param b: text(9) = claims.'https://x/y'
-- param c: int = 1
select :a, :b, :c;
`,
  'a.sql',
  { hasIdempotencyTable: false },
);
if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
const [statement] = parsed.statements;
if (statement === undefined) throw new Error('there is a statement');
const claims = (text: string) => parseJsonObject(text) ?? {};

test('are compared value by value, with every digit, and other claims do not count', () => {
  const own = claimsOf(
    statement,
    claims('{"org":{"id":9007199254740993},"https://x/y":"z","iat":1}'),
  );
  assert.deepEqual([...own.keys()], ['["org","id"]', '["https://x/y"]']);
  const has = (text: string) => hasClaims(claims(text), own);
  assert.ok(has('{"org":{"id":9007199254740993},"https://x/y":"z","iat":2}'));
  assert.ok(!has('{"org":{"id":9007199254740992},"https://x/y":"z"}'));
  assert.ok(!has('{"org":{"id":9007199254740993},"https://x/y":"other"}'));
  assert.ok(!has('{"org":{"id":9007199254740993}}'));
  assert.ok(!has('{}'));
});

test('are the same behind a message between processes, which drops methods', () => {
  const given = claims('{"org":{"id":9007199254740993},"https://x/y":"z"}');
  const own = claimsOf(statement, given);
  assert.ok(hasClaims(JSON.parse(JSON.stringify(given)), own));
});

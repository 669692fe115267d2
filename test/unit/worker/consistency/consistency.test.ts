// What a bearer has seen, from reply to reply: all of it, in a token that does not grow with the replies.
// Must not need a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSets } from '../../../../src/shared/topology/gtid-sets.ts';
import type { Session } from '../../../../src/worker/backend/session.ts';
import { Consistency } from '../../../../src/worker/consistency/consistency.ts';
import { encodeToken, type Token } from '../../../../src/worker/consistency/token.ts';

const uuid = '3e11fa47-71ca-11e1-9e33-c80aa9429562';
const replies = 1_000;

function bearerOf(name: string) {
  const part = { name, run: `${name}/1`, isPrimary: true, isNode: false };
  const session = { connection: { flavour: 'mysql' } } as Session;
  const consistency = new Consistency(() => part);
  return (owned: string, executed: string, before: Token | null) =>
    consistency.seenOn(session, [owned, executed], before, false);
}

test('MySQL: a token does not grow with replies that each saw another transaction on its way', () => {
  const see = bearerOf('one');
  let token: Token | null = null;
  for (let reply = 1; reply <= replies; reply += 1) {
    // Every second one: ranges that do not touch.
    const seen = see(`${uuid}:${2 * reply}#7`, `${uuid}:1-${2 * reply - 1}`, token);
    assert.equal(seen.isVerified, true);
    token = seen.token;
  }
  assert.ok(token?.position.kind === 'mysql');
  assert.equal(formatSets(token.position.executed), `${uuid}:1-${2 * replies - 1}`);
  assert.equal(formatSets(token.position.owned), `${uuid}:${2 * replies}`);
  assert.notEqual(encodeToken(token, Buffer.alloc(32)), null, 'it fits into a header');
});

test('MySQL: what is still on its way stays in the token, whatever else has been executed', () => {
  const see = bearerOf('one');
  const first = see(`${uuid}:6#7:7#8`, `${uuid}:1-5`, null);
  const second = see(`${uuid}:9#7`, `${uuid}:1-5:7-8`, first.token);
  assert.ok(second.token?.position.kind === 'mysql');
  assert.equal(formatSets(second.token.position.owned), `${uuid}:6:9`);
  assert.equal(formatSets(second.token.position.executed), `${uuid}:1-5:7-8`);
});

// The header Dbhttpd-Claims: which claims a client may state, and what happens to all others.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCaller } from '../../../../src/shared/clients/caller.ts';
import { defaultClient } from '../../../../src/shared/clients/client.ts';
import { stateClaims } from '../../../../src/worker/request/stated-claims.ts';

const caller = (mayClaim: readonly string[], claims = {}) =>
  createCaller({ ...defaultClient, mayClaim }, null, claims);

/** The claims of the caller afterwards, or the code of the refusal. */
function state(mayClaim: readonly string[], header: string, claims = {}): unknown {
  const stated = stateClaims(caller(mayClaim, claims), Buffer.from(header).toString('latin1'));
  return stated.ok ? JSON.parse(JSON.stringify(stated.caller.claims)) : stated.failure.code;
}

test('a client states the claims of may_claim, beside those of its token', () => {
  assert.deepEqual(state(['who'], '{"who":"Änne"}', { role: 'user' }), {
    role: 'user',
    who: 'Änne',
  });
  assert.deepEqual(state(['who', 'where'], '{"where":"here"}'), { where: 'here' });
});

test('it states no other claim, and none that its token has', () => {
  assert.equal(state([], '{}'), 'CLAIM_FORBIDDEN');
  assert.equal(state(['who'], '{"who":"a","role":"admin"}'), 'CLAIM_FORBIDDEN');
  assert.equal(state(['who'], '{"__proto__":{"who":"a"}}'), 'CLAIM_FORBIDDEN');
  assert.equal(state(['who'], '{"who":"a"}', { who: 'b' }), 'CLAIM_FORBIDDEN');
  assert.deepEqual(state(['toString'], '{"toString":"a"}'), { toString: 'a' });
});

test('anything but one JSON object is refused', () => {
  for (const header of ['', 'who', '[]', '"who"', '{"who":"a"} {}']) {
    assert.equal(state(['who'], header), 'CLAIMS', header);
  }
  const notUtf8 = stateClaims(caller(['who']), '{"who":"\xff"}');
  assert.equal(notUtf8.ok ? null : notUtf8.failure.code, 'CLAIMS');
});

// A driver's session: every worker reads what another one writes, and nothing else can write one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  characteristicsOf,
  type DriverSession,
  DriverSessions,
  freshSession,
  withCharacteristics,
} from '../../../../../src/worker/endpoints/planetscale/session.ts';

const sessions = new DriverSessions('secret');
const readCommitted = { isolation: 'read committed', isReadOnly: null } as const;
const serializable = { isolation: 'serializable', isReadOnly: true } as const;
const changed: DriverSession = {
  transaction: 'abc.def',
  next: readCommitted,
  always: serializable,
};

test('a session comes back as it was, at another worker with the same secret too', () => {
  for (const session of [freshSession, changed]) {
    const member: unknown = JSON.parse(sessions.encode(session));
    assert.deepEqual(sessions.decode(member), session);
    assert.deepEqual(new DriverSessions('secret').decode(member), session);
  }
  assert.deepEqual(sessions.decode(null), freshSession);
  assert.deepEqual(sessions.decode(undefined), freshSession);
});

test('of a session that was signed with another secret only the name of its transaction counts', () => {
  const member: unknown = JSON.parse(new DriverSessions('other').encode(changed));
  assert.deepEqual(sessions.decode(member), { ...freshSession, transaction: 'abc.def' });
});

test('an invalid session is refused', () => {
  const { token } = JSON.parse(sessions.encode(changed)) as { token: string };
  const forged = (fields: unknown) => {
    return { token: `${Buffer.from(JSON.stringify(fields)).toString('base64url')}.AAAA` };
  };
  for (const value of [
    1,
    'text',
    {},
    { token: 1 },
    { token: '' },
    { token: token.replace('.', '') },
    { token: `${token}.x` },
    { token: 'a'.repeat(9000) },
    { signature: 'of another one', vitessSession: {} },
    forged({}),
    forged([2, null, null, null, null, null]),
    forged([1, 1, null, null, null, null]),
    forged([1, null, 'CHAOS', null, null, null]),
    forged([1, null, null, 'yes', null, null]),
  ]) {
    assert.equal(sessions.decode(value), null, JSON.stringify(value));
  }
});

test('the value for the next transaction has priority over the value for all', () => {
  const all = withCharacteristics(freshSession, 'session', serializable);
  assert.deepEqual(characteristicsOf(all), serializable);
  const next = withCharacteristics(all, 'next', readCommitted);
  assert.deepEqual(characteristicsOf(next), { isolation: 'read committed', isReadOnly: true });
});

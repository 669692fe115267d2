// A member of a group that has lost its majority is not used, whatever state it reports.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge } from '../../../../src/shared/servers/judge.ts';
import type { CandidateState } from '../../../../src/shared/servers/scene.ts';
import type { GroupMember, ServerView } from '../../../../src/shared/servers/server-view.ts';
import { noKnowledge } from '../../support/server-views.ts';

function member(
  number: string,
  isReadOnly: boolean,
  reported: Partial<GroupMember>,
): CandidateState {
  const group = {
    name: 'g',
    hasSinglePrimary: true,
    state: 'ONLINE',
    takesPart: null,
    hasMajority: true,
    ...reported,
  };
  const view: ServerView = {
    identity: { name: `h:1/${number}`, startedAt: 0 },
    number,
    uuid: null,
    version: 'MySQL 9.7.4',
    isReadOnly,
    following: { kind: 'unknown' },
    position: { kind: 'mysql', sets: new Map([['u', [[1n, 5n]]]]) },
    galera: null,
    group,
    askedAt: 0,
  };
  return { view, earlier: [], address: `h${number}`, provenBy: null, notYet: null };
}

const rolesOf = (...members: readonly CandidateState[]) =>
  judge(members, noKnowledge).verdicts.map(({ role }) => role);

test('a primary without a majority is not written to, and no member without a majority takes its place', () => {
  const alone = { hasMajority: false };
  assert.deepEqual(rolesOf(member('1', false, {}), member('2', true, {})), ['primary', 'replica']);
  assert.deepEqual(rolesOf(member('1', false, alone), member('2', true, alone)), [
    'unusable',
    'unusable',
  ]);
  // The others have elected another one, and it has not noticed yet.
  assert.deepEqual(rolesOf(member('1', false, alone), member('2', false, {})), [
    'unusable',
    'primary',
  ]);
  const [verdict] = judge([member('1', false, alone)], noKnowledge).verdicts;
  assert.equal(verdict?.reason, 'the member has lost the majority of its group');
});

test('an account that may not see the group’s members uses a member as it finds it', () => {
  const unseen = { state: null, hasMajority: null };
  assert.deepEqual(rolesOf(member('1', false, unseen)), ['primary']);
});

test('a writable server that has not joined its group since its start is not used, although its state is not known', () => {
  const unseen = { state: null, hasMajority: null, hasSinglePrimary: false };
  const outside = member('1', false, { ...unseen, takesPart: false });
  const inside = member('2', false, { ...unseen, takesPart: true });
  assert.deepEqual(rolesOf(outside, inside), ['unusable', 'primary']);
  const [verdict] = judge([outside, inside], noKnowledge).verdicts;
  assert.equal(verdict?.reason, 'the server has not joined its group');
});

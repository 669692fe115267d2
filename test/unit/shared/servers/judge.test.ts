// Which server is written to, which ones are read from, and why: every rule, on invented views.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge } from '../../../../src/shared/servers/judge.ts';
import { readMysqlPosition } from '../../../../src/shared/servers/position.ts';
import type { PrimaryMemory } from '../../../../src/shared/servers/primary-memory.ts';
import type { CandidateState } from '../../../../src/shared/servers/scene.ts';
import type { ServerView } from '../../../../src/shared/servers/server-view.ts';
import { cases, fc } from '../../../support/property.ts';
import { createMember, createNode, createView } from '../../support/server-views.ts';

const seen = (view: ServerView, earlier: readonly ServerView[] = []) => ({
  view,
  earlier,
  address: `db${view.number}`,
  provenBy: null,
  notYet: null,
});
const gone = (number: string | null = null): CandidateState => ({
  view: null,
  reason: 'ECONNREFUSED',
  number,
});

function judged(
  candidates: readonly (ServerView | CandidateState)[],
  reference: ServerView | null = null,
  memory: PrimaryMemory | null = null,
  isInUse = reference !== null,
) {
  const all = candidates.map((one) => ('identity' in one ? seen(one) : one));
  const { verdicts, ...choice } = judge(all, { reference, isInUse, memory });
  const reasons = verdicts.map(({ reason }) => reason);
  return { ...choice, roles: verdicts.map(({ role }) => role).join(' '), reasons };
}

/** The memory after these views, given the memory before. */
function remembering(
  candidates: readonly (ServerView | CandidateState)[],
  before: PrimaryMemory | null = null,
): PrimaryMemory {
  const { memory } = judged(candidates, null, before);
  assert.ok(memory !== null);
  return memory;
}

const primary = createView('1', { state: '0-1-10' });
const replica = (number: string, more: Parameters<typeof createView>[1] = {}) =>
  createView(number, { follows: ['1'], state: '0-1-10', ...more });

test('a writable server that follows none is the primary, in any place; a server that follows it is a replica', () => {
  const found = judged([replica('2'), primary, replica('3')]);
  assert.deepEqual(
    [found.primary, found.roles, found.warning],
    [1, 'replica primary replica', null],
  );
  assert.deepEqual(found.reasons, [
    'follows the primary',
    'writable, and follows no server',
    'follows the primary',
  ]);
});

test('a replica is a replica although read_only is off, also while there is no primary', () => {
  const writable = replica('2', { isReadOnly: false });
  assert.equal(judged([primary, writable]).roles, 'primary replica');
  assert.equal(judged([gone('1'), writable], primary).primary, null);
  assert.equal(judged([gone('1'), writable], primary).roles, 'unusable replica');
});

test('a read-only server that follows none is neither', () => {
  const found = judged([createView('1', { isReadOnly: true, state: '0-1-1' }), gone()]);
  assert.deepEqual([found.primary, found.roles], [null, 'unusable unusable']);
  assert.deepEqual(found.reasons, ['read-only, and follows no server', 'ECONNREFUSED']);
});

test('without a primary, now or before, no server is read from', () => {
  const found = judged([gone(), replica('2')]);
  assert.deepEqual([found.primary, found.roles], [null, 'unusable unusable']);
});

test('a replica of a former primary is not one of the new primary, unless through one that is', () => {
  const promoted = createView('2', { state: '0-1-10,0-2-11' });
  const stale = judged([gone('1'), promoted, replica('3')]);
  assert.equal(stale.roles, 'unusable primary unusable');
  assert.equal(stale.reasons[2], 'it follows another server than the primary');
  const chain = judged([primary, replica('2'), replica('3', { follows: ['2'] })]);
  assert.equal(chain.roles, 'primary replica replica');
  const stranded = judged([gone('1'), promoted, replica('3'), replica('4', { follows: ['3'] })]);
  assert.equal(stranded.roles, 'unusable primary unusable unusable');
});

test('the source of a replica may be unknown: a server that is no candidate, or one that the account may not see', () => {
  assert.equal(judged([primary, replica('2', { follows: ['99'] })]).roles, 'primary replica');
  assert.equal(judged([primary, replica('2', { follows: [] })]).roles, 'primary replica');
  const unseen = replica('2', { following: { kind: 'unknown' } });
  assert.equal(judged([primary, unseen]).roles, 'primary replica');
});

test('a replica with transactions that the primary lacks serves ghosts: it is not used', () => {
  const holder = replica('3', { state: '0-1-11' });
  const memory = remembering([primary, replica('2'), replica('3')]);
  const two = createView('2', { state: '0-1-10,0-2-11' });
  assert.equal(
    judged([gone('1'), two, holder], primary, memory).roles,
    'unusable primary unusable',
  );
  const blind = judged([gone('1'), two, holder]);
  assert.deepEqual([blind.primary, blind.none?.reason], [null, 'candidate_ahead']);
  const same = judged([primary, replica('3', { state: '0-1-10,0-3-1' })]);
  assert.equal(same.reasons[1], 'it holds what the primary lacks');
});

test('a replica that was probed later than the primary is compared by an earlier view', () => {
  const ahead = replica('2', { state: '0-1-12', askedAt: 100 });
  const then = replica('2', { state: '0-1-9', askedAt: -100 });
  assert.equal(judged([primary, seen(ahead, [then])]).roles, 'primary replica');
  const unknown = judged([primary, seen(ahead)]);
  assert.equal(unknown.reasons[1], 'it has not been compared with the primary yet');
  const ghost = replica('2', { state: '0-1-11', askedAt: -100 });
  assert.equal(judged([primary, seen(ahead, [ghost])]).roles, 'primary unusable');
});

test('without a primary its replicas go on, compared with its last position', () => {
  const found = judged([gone('1'), replica('2'), replica('3', { state: '0-1-10,0-3-1' })], primary);
  assert.equal(found.roles, 'unusable replica unusable');
  assert.equal(found.reasons[2], 'it holds what the primary lacks');
});

test('servers that follow each other: the first writable one of host, with a warning if there are two', () => {
  const two = createView('2', { follows: ['3'], isReadOnly: false, state: '0-1-10' });
  const three = createView('3', { follows: ['2'], isReadOnly: false, state: '0-1-10' });
  const found = judged([three, two]);
  assert.deepEqual([found.primary, found.roles], [0, 'primary replica']);
  assert.match(found.warning ?? '', /follow each other/);
  const passive = judged([{ ...three, isReadOnly: true }, two]);
  assert.deepEqual([passive.primary, passive.warning], [1, null]);
  const four = createView('4', { follows: ['5'], isReadOnly: false, state: '0-1-10' });
  const five = createView('5', { follows: ['6'], isReadOnly: false, state: '0-1-10' });
  const six = createView('6', { follows: ['4'], isReadOnly: false, state: '0-1-10' });
  assert.equal(judged([four, five, six]).roles, 'primary replica replica');
});

test("of two writable servers, the primary is the one whose history contains the other's", () => {
  const found = judged([primary, createView('2', { state: '0-1-10,0-2-11' })]);
  assert.deepEqual([found.primary, found.roles, found.isContested], [1, 'unusable primary', false]);
  assert.match(found.warning ?? '', /set read_only on all but one/);
  assert.equal(found.reasons[0], 'writable beside the primary');
});

test('the server in use is left for one that seems to have as much only after it was probed again', () => {
  const follower = createView('1', { state: '0-1-10', follows: ['2'] });
  const inUse = { ...createView('2', { state: '0-1-10' }), askedAt: 1_000 };
  const memory = remembering([follower, inUse]);
  const back = (askedAt: number, state = '0-1-10') => ({ ...createView('1', { state }), askedAt });
  const written = { ...createView('2', { state: '0-1-10,0-2-11' }), askedAt: 2_000 };
  const chosen = (views: readonly ServerView[], reference = inUse as ServerView) =>
    judged(views, reference, memory);
  assert.equal(chosen([back(1_500), inUse]).primary, 1);
  assert.equal(chosen([back(1_500, '0-1-11'), inUse]).primary, 1);
  assert.match(chosen([back(1_500), inUse]).warning ?? '', /set read_only/);
  assert.equal(chosen([back(1_500), written], written).primary, 1, 'it has been written to');
  assert.equal(chosen([back(1_500), { ...inUse, askedAt: 2_000 }]).primary, 1, 'it is remembered');
  assert.equal(chosen([back(1_500, '0-1-11'), { ...inUse, askedAt: 2_000 }]).primary, 0);
});

test('of two servers that diverged between two probes, neither is written to once both were probed', () => {
  const one = createView('1', { state: '0-1-10' });
  const before = remembering([one, createView('2', { state: '0-1-10', follows: ['1'] })]);
  const look = (number: string, state: string, askedAt: number) =>
    createView(number, { state, askedAt });
  const two = seen(look('2', '0-1-10,0-2-11', 20), [look('2', '0-1-10', 0)]);
  const first = judged([look('1', '0-1-10', 10), two], one, before);
  assert.equal(first.primary, 0, 'it may have that too');
  assert.deepEqual(first.memory, before);
  const later = judged([look('1', '0-1-11', 30), two], one, first.memory);
  assert.deepEqual([later.primary, later.isContested], [null, true]);
  // Writes have ended, so a later view of the other one says nothing about writes that are not seen yet.
  const once = look('1', '0-1-11', 30);
  const again = seen(look('2', '0-1-10,0-2-11', 40), [two.view]);
  const since = judged([once, again], once, later.memory, false);
  assert.deepEqual([since.primary, since.isContested], [null, true]);
});

const former = createView('1', { state: '0-1-12' });
const promoted = createView('2', { state: '0-1-10,0-2-11' });

test('of two that diverged, the one that the others follow is the primary, else neither', () => {
  const third = createView('3', { follows: ['2'], state: '0-1-10,0-2-11' });
  const found = judged([former, promoted, third]);
  assert.deepEqual([found.primary, found.roles], [1, 'unusable primary replica']);
  const alone = judged([former, promoted]);
  assert.deepEqual([alone.primary, alone.isContested], [null, true]);
  assert.match(alone.warning ?? '', /two primaries/);
  assert.deepEqual(alone.reasons, ['one of two primaries', 'one of two primaries']);
  const each = (state: string) =>
    judged([former, promoted, third, createView('4', { follows: ['1'], state })]);
  assert.equal(each('0-1-9').primary, 1);
  assert.deepEqual(
    [each('0-1-12').primary, each('0-1-12').none?.reason],
    [null, 'candidate_ahead'],
  );
});

test('if the account may not see which server the others follow, their positions show it', () => {
  const blind = (state: string) => createView('3', { follows: [], state });
  assert.equal(judged([former, promoted, blind('0-1-10,0-2-11')]).primary, 1);
  assert.equal(judged([former, promoted, blind('0-1-12')]).primary, 0);
  assert.equal(judged([former, promoted, blind('0-1-10')]).isContested, true);
});

test('nor need it be known that a read-only server follows any: MySQL does not show it to every account', () => {
  const blind = (state: string) =>
    createView('3', { isReadOnly: true, following: { kind: 'unknown' }, state });
  const found = judged([former, promoted, blind('0-1-10,0-2-11')]);
  assert.deepEqual([found.primary, found.roles], [1, 'unusable primary replica']);
  assert.equal(judged([former, promoted, blind('0-1-12')]).primary, 0);
  assert.equal(judged([former, promoted, blind('0-1-10')]).isContested, true);
  // It follows no server, and reports that: it may have been written to after the one that lacks its transactions.
  const idle = createView('3', { isReadOnly: true, state: '0-1-10,0-2-11' });
  assert.equal(judged([former, promoted, idle]).primary, 1);
});

test('all gateways without a memory decide alike: neither the order of probes nor the server that was written to before counts', () => {
  const views = [former, promoted, createView('3', { follows: ['2'], state: '0-1-10,0-2-11' })];
  for (const reference of [null, former, promoted]) {
    assert.equal(judged(views, reference).primary, 1);
    assert.equal(judged([former, promoted], reference).isContested, true);
  }
});

test('of two with the same history neither is the primary, if no memory knows which one was promoted', () => {
  const state = '0-1-10,0-2-11';
  const [one, two] = [createView('1', { state }), createView('2', { state })];
  assert.equal(judged([one, two]).isContested, true);
  const third = createView('3', { follows: ['1'], state });
  assert.equal(judged([one, two, third]).isContested, true);
  const replicas = [createView('2', { follows: ['1'] }), createView('3', { follows: ['1'] })];
  const first = remembering([createView('1'), ...replicas]);
  const second = remembering([gone('1'), two, third], first);
  assert.equal(judged([one, two, third], null, second).primary, 1, 'it was promoted');
});

test('a former primary that is alone is not written to: another one is remembered', () => {
  const third = createView('3', { follows: ['2'], state: '0-1-10,0-2-11' });
  const memory = remembering([gone('1'), promoted, third]);
  const found = judged([former, gone('2')], promoted, memory);
  assert.deepEqual([found.primary, found.roles], [null, 'unusable unusable']);
  assert.equal(found.none?.reason, 'not_successor');
  assert.match(found.reasons[0] ?? '', /^writable, but another server is remembered/);
  const caughtUp = createView('1', { state: '0-1-12,0-2-12' });
  const written = createView('2', { state: '0-1-10,0-2-12' });
  assert.equal(judged([caughtUp, gone('2')], written, memory).primary, 0, 'it followed it');
  assert.equal(judged([caughtUp, gone('2')], null, memory).primary, null, 'nothing was written');
  assert.equal(judged([former, gone('2'), third], promoted, memory).primary, null);
  const followed = createView('3', { follows: ['1'], state: '0-1-10' });
  assert.equal(judged([former, gone('2'), followed], promoted, memory).primary, 0, 'repointed');
  assert.equal(judged([former, gone('2')], null, null).primary, 0, 'nothing is known');
  assert.equal(judged([gone('1'), promoted], promoted, memory).primary, 1, 'it is the same');
});

test('a server with two names does not contest itself', () => {
  const found = judged([primary, { ...primary, askedAt: 3 }, replica('2')]);
  assert.deepEqual([found.primary, found.roles], [0, 'primary unusable replica']);
  assert.equal(found.reasons[1], 'the same server as one before it in host');
});

test('an account that sees nothing: the positions distinguish a writable replica from the primary', () => {
  const unseen = (number: string, last: number) =>
    createView(number, {
      following: { kind: 'unknown' },
      position: readMysqlPosition(`00000000-0000-0000-0000-00000000000a:1-${last}`),
    });
  const found = judged([unseen('2', 8), unseen('1', 10)]);
  assert.deepEqual([found.primary, found.roles], [1, 'unusable primary']);
});

test('Galera: the first usable node of host is the writer, the others are read from', () => {
  const found = judged([createNode('3'), createNode('1'), createNode('2')]);
  assert.deepEqual([found.primary, found.roles], [0, 'primary replica replica']);
  assert.equal(found.warning, null);
});

for (const [what, node] of [
  ['is not ready', { isReady: false }],
  ['is desynced', { state: 2 }],
  ['rejects queries', { rejectsQueries: true }],
] as const) {
  test(`Galera: a node that ${what} is neither written to nor read from`, () => {
    const found = judged([createNode('1', { node }), createNode('2'), createNode('3', { node })]);
    assert.equal(found.roles, 'unusable primary unusable');
    assert.match(found.reasons[0] ?? '', /the Galera node/);
  });
}

test('Galera: read-only nodes are read from; two clusters contest each other; a position apart does not', () => {
  assert.equal(judged([createNode('1', { isReadOnly: true }), createNode('2')]).primary, 1);
  assert.equal(judged([createNode('1'), createNode('2', { cluster: 'other' })]).isContested, true);
  const found = judged([createNode('1', { committed: 5n }), createNode('2', { committed: 9n })]);
  assert.equal(found.roles, 'primary replica');
});

test('a replica may show for a moment what its primary has yet to show; a row that another server left there is a ghost at once', () => {
  const position = (last: number) =>
    readMysqlPosition(`aaaaaaaa-1111-1111-1111-bbbbbbbbbbbb:1-${last}`);
  const source = createView('1', { position: position(10), askedAt: 5_000 });
  const look = (last: number, askedAt: number) =>
    createView('2', { follows: ['1'], position: position(last), askedAt });
  const looks = [look(12, 4_999), look(9, 4_000)] as const;
  const roleOf = (provenBy: ServerView['identity'] | null, views: readonly ServerView[]) => {
    const [view, ...earlier] = views as [ServerView];
    return judged([source, { ...seen(view, earlier), provenBy }]).roles;
  };
  assert.equal(roleOf(source.identity, looks), 'primary replica');
  assert.equal(roleOf(null, looks), 'primary unusable');
  assert.equal(roleOf(look(0, 0).identity, looks), 'primary unusable');
  assert.equal(roleOf({ ...source.identity, startedAt: 2_000 }, looks), 'primary unusable');
  // It did not go.
  const kept = [look(12, 4_999), look(12, 4_000)];
  assert.equal(roleOf(source.identity, kept), 'primary unusable');
});

test('a group with one primary: the writable member; another state than ONLINE is not used', () => {
  const second = createMember('2', {}, { isReadOnly: true });
  assert.equal(judged([second, createMember('1', {})]).roles, 'replica primary');
  const joining = createMember('3', { state: 'RECOVERING' }, { isReadOnly: true });
  const found = judged([createMember('1', {}), joining]);
  assert.equal(found.roles, 'primary unusable');
  assert.equal(found.reasons[1], 'the member of the group is RECOVERING');
  const unseen = createMember('2', { state: null }, { isReadOnly: true });
  assert.equal(judged([createMember('1', { state: null }), unseen]).roles, 'primary replica');
});

test('a group with many primaries has one writer: the first of host', () => {
  const many = { hasSinglePrimary: false };
  const found = judged([
    createMember('1', { ...many, state: 'ERROR' }),
    createMember('2', many),
    createMember('3', many),
  ]);
  assert.equal(found.roles, 'unusable primary replica');
});

test('there is at most one primary, and each verdict has a reason', () => {
  const state = fc.constantFrom('', '0-1-10', '0-1-12', '0-1-10,0-2-11', '0-1-12,0-2-11');
  const follows = fc.constantFrom(undefined, [], ['1'], ['2'], ['3'], ['99']);
  const one = (number: string) =>
    fc.oneof(
      fc.constant(gone(number)),
      fc
        .tuple(state, follows, fc.boolean(), fc.integer({ min: -5, max: 5 }), fc.boolean())
        .map(([its, followed, isReadOnly, askedAt, isBack]): CandidateState => {
          const wish = followed === undefined ? {} : { follows: followed };
          const view = createView(number, { state: its, ...wish, isReadOnly, askedAt });
          return { ...seen(view), notYet: isBack ? null : 'it has returned' };
        }),
    );
  const all = fc.tuple(one('1'), one('2'), one('3'));
  fc.assert(
    fc.property(all, all, fc.constantFrom(null, primary, promoted), (before, now, reference) => {
      const isInUse = reference !== null;
      const { memory } = judge(before, { reference, isInUse, memory: null });
      const found = judge(now, { reference, isInUse, memory });
      const writers = found.verdicts.flatMap(({ role }, at) => (role === 'primary' ? [at] : []));
      assert.deepEqual(writers, found.primary === null ? [] : [found.primary]);
      assert.ok(found.verdicts.every(({ reason }) => reason !== '' && reason !== 'not judged'));
      if (found.isContested) assert.equal(found.primary, null);
      assert.equal(found.none === null, found.primary !== null);
      const chosen = now[found.primary ?? -1];
      if (chosen !== undefined) assert.equal(chosen.view?.isReadOnly, false);
    }),
    { numRuns: cases(1_000) },
  );
});

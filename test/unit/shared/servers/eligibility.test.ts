// Which writable server may be the primary: every rule, the effect of each step on the memory, and how that counts at the next probe.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { judge } from '../../../../src/shared/servers/judge.ts';
import {
  formatPrimaryMemory,
  type PrimaryMemory,
  parsePrimaryMemory,
} from '../../../../src/shared/servers/primary-memory.ts';
import type { CandidateState } from '../../../../src/shared/servers/scene.ts';
import type { ServerView } from '../../../../src/shared/servers/server-view.ts';
import { createView, noKnowledge, type ViewWish } from '../../support/server-views.ts';

const away = (number: string): CandidateState => ({ view: null, reason: 'ECONNREFUSED', number });
const seen = (view: ServerView, before: ServerView | string = ''): CandidateState => ({
  view,
  earlier: typeof before === 'string' ? [] : [before],
  address: `db${view.number}`,
  provenBy: null,
  notYet: null,
});

const state = '0-1-10';
const writable = (number: string, wish: ViewWish = {}) => createView(number, { state, ...wish });
const replica = (number: string, follows: string, wish: ViewWish = {}) =>
  createView(number, { state, follows: [follows], isConnected: true, ...wish });
const again = (view: ServerView): ServerView => ({
  ...view,
  identity: { ...view.identity, startedAt: view.identity.startedAt + 60 },
});

/** Judges these views of the servers, one after the other, with the memory between them as it would be on disk. */
function look(...steps: readonly (readonly (ServerView | string)[])[]) {
  let memory: PrimaryMemory | null = null;
  let found: ReturnType<typeof judge> | null = null;
  for (const [index, step] of steps.entries()) {
    const before = steps[index - 1] ?? [];
    found = judge(
      step.map((one, at) => (typeof one === 'string' ? away(one) : seen(one, before[at]))),
      { ...noKnowledge, memory },
    );
    if (found.memory !== null) {
      assert.deepEqual(parsePrimaryMemory(formatPrimaryMemory(found.memory)), found.memory);
    }
    memory = found.memory;
  }
  assert.ok(found !== null);
  const { primary, none } = found;
  return { primary, rule: none?.reason ?? null, evidence: none?.evidence ?? '', memory };
}

const start = [writable('1'), replica('2', '1'), replica('3', '1')] as const;
const lost = [
  '1',
  replica('2', '1', { isConnected: false }),
  replica('3', '1', { isConnected: false }),
] as const;
const promoted = ['1', writable('2'), lost[2]] as const;
const repointed = ['1', writable('2'), replica('3', '2')] as const;
const back = again(writable('1'));

test('a former primary that returns beside an idle successor is not the primary, though the third still follows it', () => {
  const found = look(start, lost, promoted, [back, writable('2'), replica('3', '1')]);
  assert.equal(found.primary, 1);
  assert.deepEqual(found.memory?.former, ['db1/1']);
});

test('a gateway that has seen the successor refuses a former primary that alone can be reached', () => {
  const found = look(start, promoted, repointed, [back, '2', replica('3', '2')]);
  assert.deepEqual([found.primary, found.rule], [null, 'not_successor']);
  assert.match(found.evidence, /^candidate 1 is writable, but another server is remembered/);
});

test('a replica that was not seen behind the primary counts against it once it follows another server than before', () => {
  const alone = [start[0], '2', '3'] as const;
  const stranger = ['1', replica('2', '1', { isConnected: false }), '3'] as const;
  const found = look(alone, stranger, [back, replica('2', '3'), '3']);
  assert.deepEqual([found.primary, found.rule], [null, 'replica_elsewhere']);
  // It follows the server that it followed before the primary was one: that is no news.
  const late = look(start, promoted, ['1', writable('2'), replica('3', '1')]);
  assert.equal(late.primary, 1);
});

test('a former primary without a known position has not followed any server, as far as is known', () => {
  const silent = { ...back, position: null };
  const found = look(start, promoted, [silent, '2', '3']);
  assert.deepEqual([found.primary, found.rule], [null, 'not_successor']);
});

test('a gateway whose memory is old refuses a restarted primary, if a replica has left it', () => {
  const found = look(start, [back, '2', replica('3', '2')]);
  assert.deepEqual([found.primary, found.rule], [null, 'replica_left']);
  assert.match(found.evidence, /candidate 3 was its replica, and follows a server now/);
});

test('a gateway without a memory refuses a server if a replica is connected to a server that it cannot see', () => {
  const found = look([back, '2', replica('3', '2')]);
  assert.deepEqual([found.primary, found.rule], [null, 'replica_elsewhere']);
  const dangling = look([back, '2', replica('3', '2', { isConnected: false })]);
  assert.equal(dangling.primary, 0, 'it is connected to none, and holds nothing more');
  const written = replica('3', '2', { isConnected: false, state: '0-1-10,0-2-11' });
  const ahead = look([back, '2', written]);
  assert.deepEqual([ahead.primary, ahead.rule], [null, 'candidate_ahead']);
});

test('a restarted primary is refused beside a writable replica', () => {
  const found = look(start, [back, writable('2'), replica('3', '1')]);
  assert.equal(found.primary, 1);
  const stranger = look([writable('1'), '2', '3'], [back, writable('2'), '3']);
  assert.deepEqual([stranger.primary, stranger.rule], [null, 'restarted']);
});

test('a replica succeeds a primary that was lost with writes, whatever the third server holds of them', () => {
  const written = writable('1', { state: '0-1-12' });
  const ahead = replica('3', '1', { state: '0-1-12', isConnected: false });
  const found = look(
    [written, replica('2', '1'), replica('3', '1', { state: '0-1-12' })],
    ['1', writable('2'), ahead],
  );
  assert.equal(found.primary, 1);
});

test('a former primary does not take the place of a successor that reboots read-only', () => {
  const two = writable('2', { state: '0-1-10,0-2-11' });
  const rebooted = again({ ...two, isReadOnly: true });
  const found = look(start, ['1', two, '3'], [back, rebooted, '3']);
  assert.deepEqual([found.primary, found.rule], [null, 'not_successor']);
  const fresh = look([back, rebooted, '3']);
  assert.deepEqual([fresh.primary, fresh.rule], [null, 'candidate_ahead']);
});

test('a second failover is followed although the last replica never was behind the first successor', () => {
  const found = look(start, promoted, ['1', '2', lost[2]], ['1', '2', writable('3')]);
  assert.equal(found.primary, 2);
  assert.deepEqual(found.memory?.former, ['db1/1', 'db2/2']);
});

test('a switchover there and back is followed, also without a probe while the other server was the primary', () => {
  const other = [replica('1', '2'), writable('2'), replica('3', '2')] as const;
  assert.equal(look(start, other, start).primary, 0);
  assert.equal(look(start, start).primary, 0);
  const unseen = look(start, ['1', '2', '3'], other);
  assert.equal(unseen.primary, 1);
  // Its replicas follow it: that is proof without any memory of how it came.
  const returned = look(start, promoted, [writable('1'), replica('2', '1'), replica('3', '1')]);
  assert.equal(returned.primary, 0);
});

test('an errant row on a replica changes nothing, direct or behind another one', () => {
  const errant = '0-1-10,0-3-11';
  assert.equal(look([start[0], start[1], replica('3', '1', { state: errant })]).primary, 0);
  const chain = replica('3', '2', { state: errant });
  assert.equal(look([start[0], start[1], chain]).primary, 0);
});

test('a chain whose middle is dead does not count against its primary', () => {
  const chain = [start[0], start[1], replica('3', '2')] as const;
  const broken = [start[0], '2', replica('3', '2', { isConnected: false })] as const;
  assert.equal(look(chain, broken).primary, 0);
  assert.equal(look(broken).primary, 0);
  const half = [start[0], '2', replica('3', '2')] as const;
  assert.equal(look(chain, half).primary, 0, 'the memory knows what the end follows');
  assert.equal(look(half).rule, 'replica_elsewhere');
});

test('a restored primary is accepted under its identity, and under another one only once its replicas follow it', () => {
  const restored = again(writable('1', { state: '0-1-9' }));
  assert.equal(look(start, [restored, start[1], start[2]]).primary, 0);
  const renamed = { ...restored, number: '7', identity: { name: 'db7', startedAt: 9_000 } };
  const dangling = [replica('2', '1', { isConnected: false }), lost[2]] as const;
  const refused = look(start, [renamed, ...dangling]);
  assert.deepEqual([refused.primary, refused.rule], [null, 'not_successor']);
  const followed = look(start, [renamed, replica('2', '7'), replica('3', '7')]);
  assert.equal(followed.primary, 0);
});

test('a server that was writable beside the primary is not a replica any more', () => {
  const beside = [start[0], writable('2'), start[2]] as const;
  const found = look(start, beside, beside, ['1', writable('2'), lost[2]]);
  assert.deepEqual([found.primary, found.rule], [null, 'not_successor']);
  const follows = look(start, beside, beside, start, promoted);
  assert.equal(follows.primary, 1, 'it has followed it again');
});

test('in a switchover the next primary may be probed first, and still takes the place', () => {
  const readOnly = writable('1', { isReadOnly: true });
  const found = look(
    start,
    [start[0], writable('2'), start[2]],
    [readOnly, writable('2'), start[2]],
  );
  assert.equal(found.primary, 1);
  const late = { ...start[0], askedAt: start[0].askedAt - 1 };
  const beside = [late, writable('2'), start[2]] as const;
  assert.equal(look(start, beside, beside, [readOnly, writable('2'), start[2]]).primary, 1);
});

test('a replica that names its source by an address alone, as after a restart, is still known', () => {
  const named = (number: string | null) =>
    createView('3', {
      state,
      isReadOnly: true,
      following: {
        kind: 'listed',
        sources: [{ number, uuid: null, address: '10.0.0.1:3306', isConnected: number !== null }],
      },
    });
  const found = look([start[0], start[1], named('1')], [start[0], start[1], named(null)]);
  const [, third] = found.memory?.replicas ?? [];
  assert.deepEqual([third?.follows.number, third?.term], ['1', 1]);
});

test('two views of the same state add nothing to the memory', () => {
  const once = look(start, lost, promoted, repointed).memory;
  const twice = look(start, lost, lost, promoted, promoted, repointed, repointed).memory;
  assert.deepEqual(twice, once);
  assert.equal(once?.term, 2);
});

test('a server that returns counts against others at once, but is not used at once', () => {
  const { memory } = look(start, promoted, repointed);
  const returning: CandidateState = {
    ...seen(writable('2')),
    notYet: 'it was gone',
  } as CandidateState;
  const found = judge([away('1'), returning, seen(replica('3', '2'))], { ...noKnowledge, memory });
  assert.deepEqual([found.primary, found.none?.reason], [null, 'returning']);
});

test('a former primary that returns is refused while its idle successor follows a server that the account may not see', () => {
  const hidden = (number: string) =>
    createView(number, { state, isReadOnly: true, following: { kind: 'listed', sources: [] } });
  const found = look(
    [start[0], hidden('2'), '3'],
    ['1', writable('2'), '3'],
    [back, hidden('2'), '3'],
  );
  assert.deepEqual([found.primary, found.rule], [null, 'not_successor']);
});

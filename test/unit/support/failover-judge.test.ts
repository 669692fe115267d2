// The judge of failovers: a history as it must be passes, each single lie, loss and doubled row is seen.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Failover,
  type FailoverFound,
  failoverPromises,
  judgeFailover,
} from '../../support/histories/failover-judge.ts';
import type { Way, Write } from '../../support/histories/failover-writes.ts';
import type { Reported } from '../../support/histories/reported.ts';

const failover: Failover = {
  struckMs: 1_000,
  promotedMs: 2_000,
  returnedMs: 6_000,
  isLossless: false,
};

const reply = (status: number, fromMs: number, more: object = {}): Reported => ({
  kind: 'reply',
  status,
  text: '{}',
  isReplayed: false,
  code: null,
  outcome: null,
  fromMs,
  toMs: fromMs + 10,
  ...more,
});
const ok = (fromMs: number, more: object = {}) => reply(200, fromMs, more);
const denied = (outcome: string | null, fromMs = 1_500) =>
  reply(503, fromMs, { code: 'NO_PRIMARY', outcome });
const unknown = (fromMs = 1_500) =>
  reply(502, fromMs, { code: 'CONNECTION_LOST', outcome: 'unknown' });
const cut: Reported = { kind: 'cut', detail: 'ECONNRESET', fromMs: 1_500, toMs: 1_510 };

const write = (id: number, reported: readonly Reported[], way: Way = '/db'): Write => ({
  id,
  way,
  reported,
});
/** Without one of these, nothing was served after the promotion. */
const later = write(99, [ok(2_500)]);

const countOf = (ids: readonly number[]) =>
  new Map(ids.map((id) => [id, ids.filter((one) => one === id).length]));
const there = (
  ids: readonly number[],
  formerIds: readonly number[] = [],
  more: Partial<FailoverFound> = {},
): FailoverFound => ({
  rows: countOf([...ids, 99]),
  former: countOf(formerIds),
  keys: [],
  sentToFormer: [],
  ...more,
});

function judge(writes: readonly Write[], found: FailoverFound, when: Partial<Failover> = {}) {
  const { breaches, ...rest } = judgeFailover([...writes, later], { ...failover, ...when }, found);
  const promises = new Set(breaches.map(({ promise }) => promise));
  const names = Object.entries(failoverPromises).filter(([, promise]) => promises.has(promise));
  return { ...rest, broken: names.map(([name]) => name) };
}
const broken = (...given: Parameters<typeof judge>) => judge(...given).broken;

test('a history in which all reports are true keeps every promise', () => {
  assert.deepEqual(broken([write(1, [ok(100)])], there([1], [1])), []);
  for (const outcome of ['not_executed', 'rolled_back', 'failed', null]) {
    assert.deepEqual(broken([write(1, [denied(outcome)])], there([])), []);
  }
  for (const found of [there([]), there([1]), there([], [1]), there([1], [1])]) {
    assert.deepEqual(broken([write(1, [unknown()])], found), []);
  }
  assert.equal(judge([], there([])).servedMs, 510);
});

test('a doubled row is found on either server, and a row that no client wrote', () => {
  assert.deepEqual(broken([write(1, [unknown()])], there([1, 1])), ['once']);
  assert.deepEqual(broken([write(1, [unknown()])], there([1], [1, 1])), ['once']);
  assert.deepEqual(broken([], there([5])), ['once']);
});

test('a row that was reported as missing is found on either server', () => {
  for (const outcome of ['not_executed', 'rolled_back', 'failed', null]) {
    assert.deepEqual(broken([write(1, [denied(outcome)])], there([1])), ['honest']);
    assert.deepEqual(broken([write(1, [denied(outcome)])], there([], [1])), ['honest']);
  }
});

test('a row that went with the former primary is counted; one that went nowhere, too late or without need is seen', () => {
  const early = [write(1, [ok(100)])];
  const loss = judge(early, there([], [1]));
  assert.deepEqual([loss.broken, loss.lost], [[], [1]]);
  assert.deepEqual(broken(early, there([])), ['kept']);
  assert.deepEqual(broken(early, there([], [1]), { isLossless: true }), ['kept']);
  const late = (toMs: number) => [write(1, [ok(900, { toMs })])];
  assert.deepEqual(judge(late(2_500), there([], [1])).lost, [1], 'its answer was read late');
  assert.deepEqual(broken(late(6_100), there([], [1])), ['kept']);
  assert.deepEqual(broken([write(1, [ok(2_100)])], there([], [1])), ['kept']);
  assert.deepEqual(broken(early, there([], [], { former: null })), ['kept']);
});

test('a former primary that is written to after its return is seen', () => {
  assert.deepEqual(broken([write(1, [ok(6_100)])], there([1], [1])), ['alone']);
  // Written after the failover, to the server in use, and before the return to the other: a split that no client may see.
  assert.deepEqual(broken([write(1, [ok(6_100)])], there([], [1])), ['kept', 'alone']);
  const sentToFormer = ['insert into written values (7)'];
  assert.deepEqual(broken([], there([], [], { sentToFormer })), ['alone']);
});

test('a service that comes back late or not at all is seen', () => {
  const none = judgeFailover([], failover, { ...there([]), rows: new Map() });
  assert.equal(none.servedMs, null);
  assert.deepEqual(
    none.breaches.map(({ promise }) => promise),
    [failoverPromises.served],
  );
  assert.deepEqual(broken([], there([]), { promotedMs: 500, struckMs: 400 }), ['served']);
  // A row that the former primary has as well proves nothing about the new one.
  assert.deepEqual(broken([], there([], [99])), ['served']);
});

test('a failure that the failover does not explain is seen', () => {
  assert.deepEqual(broken([write(1, [cut])], there([])), ['excused']);
  assert.deepEqual(broken([write(1, [{ ...cut, kind: 'silence' }])], there([])), ['excused']);
  for (const fromMs of [100, 4_100]) {
    assert.deepEqual(broken([write(1, [unknown(fromMs)])], there([])), ['excused']);
    assert.deepEqual(broken([write(1, [denied('not_executed', fromMs)])], there([])), ['excused']);
  }
  assert.deepEqual(broken([write(1, [denied('partial')])], there([])), ['excused']);
  const back = [write(1, [unknown(8_900)])];
  assert.deepEqual(broken(back, there([]), { settledMs: 7_000 }), []);
  assert.deepEqual(broken(back, there([]), { settledMs: 6_800 }), ['excused']);
});

test('with a key, a client without an outcome, a key without its row, and another reply than the first are found', () => {
  const keyed = (reported: readonly Reported[]) => [write(1, reported, 'batch with key')];
  const whole = there([1], [], { keys: [1] });
  const [one, other] = [{ text: '{"a":1}' }, { text: '{"a":2}' }];
  const again = { isReplayed: true };
  assert.deepEqual(broken(keyed([unknown(), ok(2_100, again)]), whole), []);
  assert.deepEqual(broken(keyed([ok(100, one), ok(7_000, { ...one, ...again })]), whole), []);
  assert.deepEqual(
    broken(keyed([ok(100, one), ok(7_000, other)]), there([1], [1], { keys: [1] })),
    [],
  );
  assert.deepEqual(broken(keyed([unknown()]), there([])), ['reported']);
  assert.deepEqual(broken(keyed([ok(100)]), there([1])), ['whole']);
  assert.deepEqual(broken(keyed([ok(100)]), there([], [1], { keys: [1] })), ['whole']);
  assert.deepEqual(broken(keyed([ok(100, one), ok(7_000, { ...other, ...again })]), whole), [
    'first',
  ]);
});

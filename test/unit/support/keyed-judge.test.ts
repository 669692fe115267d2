// The judge of histories of batches with keys: a right history passes, and the judge finds each single lie. Runs nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawBatch, type KeyedBatch } from '../../support/histories/keyed-batches.ts';
import type { Manner, Story } from '../../support/histories/keyed-client.ts';
import type { Outage, Strike } from '../../support/histories/keyed-faults.ts';
import { type Found, judgeStories, keyedPromises } from '../../support/histories/keyed-judge.ts';
import type { Reported } from '../../support/histories/reported.ts';
import { seed } from '../../support/property.ts';
import { createRandom } from '../../support/random.ts';

const batch = (number: number, more: Partial<KeyedBatch> = {}): KeyedBatch => ({
  number,
  body: { isolation: null, statements: [] },
  refusal: null,
  totals: [1],
  hasCall: false,
  results: [1, [[number]]],
  ...more,
});
const persists: Manner = { copies: 1, leavesAfterMs: null, persists: true, repeats: 0 };
const givesUp: Manner = { ...persists, persists: false };

/** The text of a right reply to the first request of a batch. */
const text = (number: number, serial = 0, read = number) =>
  JSON.stringify({
    committed: true,
    retries: 0,
    results: [{ affected_rows: 1 }, { results: [{ rows: [[read]] }, { affected_rows: 0 }] }],
    request_id: `history-${number}-${serial}`,
  });

const reply = (
  status: number,
  more: Partial<Extract<Reported, { kind: 'reply' }>> = {},
): Reported => ({
  kind: 'reply',
  status,
  text: '{}',
  isReplayed: false,
  code: null,
  outcome: null,
  fromMs: 10,
  toMs: 20,
  ...more,
});
const done = (number: number, more: object = {}) => reply(200, { text: text(number), ...more });
const repeated = (number: number, more: object = {}) =>
  done(number, { isReplayed: true, fromMs: 30, toMs: 40, ...more });
const rolledBack = reply(409, { code: 'ER_LOCK_DEADLOCK', outcome: 'rolled_back' });
const unknown = reply(504, { code: 'DEADLINE_RUNNING', outcome: 'unknown' });
const cut: Reported = { kind: 'cut', detail: 'ECONNRESET', fromMs: 10, toMs: 20 };

/** Existing batches, and their counts. */
function there(numbers: readonly number[], more: Partial<Found> = {}): Found {
  const once = new Map(numbers.map((number) => [number, 1]));
  const kept = numbers.map((number) => text(number));
  return { entries: once, marks: once, totals: new Map([[1, numbers.length]]), kept, ...more };
}

function broken(
  stories: readonly Story[],
  found: Found,
  outages: readonly Outage[] = [],
): string[] {
  const promises = judgeStories(stories, found, outages).map(({ promise }) => promise);
  const names = Object.entries(keyedPromises);
  return names.filter(([, promise]) => promises.includes(promise)).map(([name]) => name);
}
const one = (
  reported: readonly Reported[],
  more: Partial<KeyedBatch> = {},
  manner = persists,
): Story[] => [{ batch: batch(1, more), manner, reported }];
const during = (what: Strike): Outage[] => [{ what, fromMs: 15, toMs: 16 }];

test('a history in which all reports are true keeps all promises', () => {
  assert.deepEqual(broken(one([done(1), repeated(1)]), there([1])), []);
  assert.deepEqual(broken(one([rolledBack, done(1)]), there([1])), []);
  assert.deepEqual(broken(one([repeated(1), done(1, { toMs: 50 })]), there([1])), []);
  assert.deepEqual(broken(one([cut, repeated(1)]), there([1]), during('kill')), []);
  for (const found of [there([]), there([1])]) {
    assert.deepEqual(broken(one([cut], {}, givesUp), found, during('kill')), []);
    assert.deepEqual(broken(one([unknown], {}, givesUp), found, during('crash')), []);
    assert.deepEqual(broken(one([{ ...cut, kind: 'left' }], {}, givesUp), found), []);
  }
  const refused = reply(409, { code: 'ER_DUP_ENTRY', outcome: 'rolled_back' });
  assert.deepEqual(broken(one([refused], { refusal: 'ER_DUP_ENTRY' }), there([])), []);
});

test('a batch that is there twice, or is missing although it was reported, is found', () => {
  const twice = there([1], { entries: new Map([[1, 2]]), marks: new Map([[1, 2]]) });
  const whole = { totals: new Map([[1, 2]]), kept: [text(1), text(1)] };
  assert.deepEqual(broken(one([done(1)]), { ...twice, ...whole }), ['once']);
  assert.deepEqual(broken(one([cut], {}, givesUp), { ...twice, ...whole }, during('kill')), [
    'most',
  ]);
  assert.deepEqual(broken(one([done(1)]), there([])), ['once', 'first']);
  assert.deepEqual(broken(one([rolledBack], {}, givesUp), there([1])), ['most']);
  assert.deepEqual(broken(one([done(1)]), there([1, 2], { totals: new Map([[1, 1]]) })), ['most']);
});

test('half a batch, a key without its work, and a count that is too high are seen', () => {
  assert.deepEqual(broken(one([done(1)]), there([1], { marks: new Map() })), ['whole']);
  assert.deepEqual(broken(one([done(1)]), there([1], { totals: new Map([[1, 2]]) })), ['whole']);
  const left = one([{ ...cut, kind: 'left' }], {}, givesUp);
  assert.deepEqual(broken(left, there([], { kept: [text(1)] })), ['whole']);
});

test('another reply than the first, a repetition without its mark, and wrong rows are seen', () => {
  const other = repeated(1, { text: text(1, 1) });
  assert.deepEqual(broken(one([done(1), other]), there([1])), ['first']);
  const unmarked = done(1, { fromMs: 30, toMs: 40 });
  assert.deepEqual(broken(one([repeated(1, { fromMs: 10, toMs: 20 }), unmarked]), there([1])), [
    'first',
  ]);
  assert.deepEqual(broken(one([done(1), done(1)]), there([1])), ['first']);
  const wrong = text(1, 0, 2);
  assert.deepEqual(broken(one([done(1, { text: wrong })]), there([1], { kept: [wrong] })), [
    'right',
  ]);
});

test('an ending that no fault explains is found', () => {
  for (const outages of [[], during('kill'), during('cut')]) {
    assert.deepEqual(broken(one([unknown], {}, givesUp), there([]), outages), ['known']);
  }
  for (const outages of [[], during('crash')]) {
    assert.deepEqual(broken(one([cut], {}, givesUp), there([]), outages), ['explained']);
  }
  const strange = reply(409, { code: 'TRANSACTION_ENDED', outcome: 'partial' });
  assert.deepEqual(broken(one([strange], {}, givesUp), there([])), ['explained']);
  const partial = reply(409, { code: 'ER_LOCK_DEADLOCK', outcome: 'partial' });
  assert.deepEqual(broken(one([partial], {}, givesUp), there([])), ['explained']);
  assert.deepEqual(broken(one([partial], { hasCall: true }, givesUp), there([])), []);
  assert.deepEqual(broken(one([rolledBack]), there([])), ['reported']);
});

test('the same seed draws the same batches', () => {
  const draw = () => {
    const random = createRandom(seed);
    return [1, 2, 3, 4, 5, 6, 7, 8].map((number) => drawBatch(number, random));
  };
  assert.deepEqual(draw(), draw());
});

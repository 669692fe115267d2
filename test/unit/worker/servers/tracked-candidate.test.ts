// The knowledge about one candidate: when it counts, and which views are kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConnectFailure } from '../../../../src/shared/mysql/connect-failure.ts';
import { TrackedCandidate } from '../../../../src/worker/servers/tracked-candidate.ts';
import { createView } from '../../support/server-views.ts';

const failure: ConnectFailure = {
  kind: 'server silent',
  errno: null,
  reason: 'no answer',
  hint: null,
};

const mayBeUsed = ({ seen }: TrackedCandidate) => seen.view !== null && seen.notYet === null;

test('a server counts at its first look, and after three once it was gone', () => {
  const candidate = new TrackedCandidate('db1:3306');
  assert.equal(candidate.probes, 0);
  candidate.noteView(createView('1'));
  assert.equal(candidate.seen.view?.number, '1');
  candidate.noteFailure(failure);
  assert.deepEqual(candidate.seen, { view: null, reason: 'no answer', number: '1' });
  for (const counts of [false, false, true]) {
    candidate.noteView(createView('1'));
    assert.equal(mayBeUsed(candidate), counts);
  }
});

test('a failure in between starts the count again', () => {
  const candidate = new TrackedCandidate('db1:3306');
  candidate.noteView(createView('1'));
  for (const _round of [1, 2, 3]) {
    candidate.noteFailure(failure);
    candidate.noteView(createView('1'));
    candidate.noteView(createView('1'));
    const { seen } = candidate;
    assert.match((seen.view !== null && seen.notYet) || '', /counts after 3 probes/);
  }
});

test('a server that was never reached has not been gone: it counts after its first probe', () => {
  const candidate = new TrackedCandidate('db1:3306');
  candidate.noteFailure(failure);
  assert.equal(candidate.probes, 1);
  candidate.noteView(createView('1'));
  assert.equal(candidate.seen.view?.number, '1');
});

test('the kept views go back a second and more, however often the server is probed', () => {
  const candidate = new TrackedCandidate('db1:3306');
  for (let askedAt = 0; askedAt <= 10_000; askedAt += 50) {
    candidate.noteView(createView('1', { askedAt }));
  }
  const { seen } = candidate;
  assert.ok(seen.view !== null);
  assert.equal(seen.view.askedAt, 10_000);
  assert.ok(
    (seen.earlier.at(-1)?.askedAt ?? 0) <= 8_800,
    JSON.stringify(seen.earlier.map((one) => one.askedAt)),
  );
  assert.ok(seen.earlier.length <= 4);
});

test('another server behind the same name has no past', () => {
  const candidate = new TrackedCandidate('db1:3306');
  candidate.noteView(createView('1'));
  candidate.noteView(createView('2'));
  const { seen } = candidate;
  assert.ok(seen.view !== null);
  assert.deepEqual([seen.view.number, seen.earlier], ['2', []]);
});

test('its last primary is remembered until it is no replica any more', () => {
  const candidate = new TrackedCandidate('db1:3306');
  const { identity } = createView('2');
  const provenBy = () => (candidate.seen.view === null ? 'gone' : candidate.seen.provenBy);
  candidate.noteView(createView('1'));
  candidate.noteVerdict({ role: 'replica', reason: '' }, null);
  assert.equal(provenBy(), null);
  candidate.noteVerdict({ role: 'replica', reason: '' }, identity);
  candidate.noteVerdict({ role: 'replica', reason: '' }, null);
  assert.equal(provenBy(), identity);
  candidate.noteVerdict({ role: 'unusable', reason: '' }, identity);
  assert.equal(provenBy(), null);
  candidate.noteVerdict({ role: 'replica', reason: '' }, identity);
  candidate.noteView(createView('3'));
  assert.equal(provenBy(), null);
});

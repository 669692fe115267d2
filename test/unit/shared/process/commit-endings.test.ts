// How open transactions have ended: a forgotten one is never reported as not committed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommitEndings } from '../../../../src/shared/process/commit-endings.ts';

const nameOf = (serial: number, incarnation = 'aa') => ({ incarnation, serial });

test('the last note counts, and an unknown transaction is over', () => {
  const endings = new CommitEndings();
  endings.note(nameOf(1), 'unknown');
  endings.note(nameOf(2), 'unknown');
  endings.note(nameOf(3), 'unknown');
  endings.note(nameOf(2), 'committed');
  endings.note(nameOf(3), 'over');
  const reported = [1, 2, 3, 4].map((serial) => endings.of(nameOf(serial)));
  assert.deepEqual(reported, ['unknown', 'committed', 'over', 'over']);
  assert.equal(endings.of(nameOf(1, 'bb')), 'over');
});

test('a forgotten transaction is unknown, and so are those before it', () => {
  const endings = new CommitEndings(2);
  for (const serial of [3, 2, 7, 8]) endings.note(nameOf(serial), 'committed');
  const reported = [1, 2, 3, 4, 7, 8].map((serial) => endings.of(nameOf(serial)));
  assert.deepEqual(reported, ['unknown', 'unknown', 'unknown', 'over', 'committed', 'committed']);
  assert.equal(endings.of(nameOf(1, 'bb')), 'over');
});

test('one that came to nothing late is over, though younger ones have been forgotten', () => {
  const endings = new CommitEndings(3);
  for (const serial of [2, 3, 4, 5, 6]) endings.note(nameOf(serial), 'committed');
  endings.note(nameOf(1), 'over');
  assert.equal(endings.of(nameOf(1)), 'over');
  assert.equal(endings.of(nameOf(2)), 'unknown');
});

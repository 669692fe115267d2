// The command lines of long runs, and the mistakes in them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRounds } from '../../../../scripts/support/rounds.ts';
import { readCount } from '../../../../scripts/support/run-command.ts';

const strikes = ['killed', 'frozen'] as const;

test('takes all strikes in turn, or those that are named', () => {
  const all = parseRounds({ rounds: '12', seed: '0' }, strikes);
  assert.deepEqual(all, { rounds: 12, kinds: ['killed', 'frozen'], seed: 0 });
  const one = parseRounds({ rounds: '1', seed: '7', how: 'frozen' }, strikes);
  assert.deepEqual(one, { rounds: 1, kinds: ['frozen'], seed: 7 });
});

test('a wrong number is reported with its range, and an unknown strike with the known ones', () => {
  for (const rounds of ['0', '1001', '-1', '1e2', '2.5', '']) {
    const message = '--rounds takes a number from 1 to 1000';
    assert.throws(() => parseRounds({ rounds, seed: '1' }, strikes), { message }, rounds);
  }
  const message = '--seed takes a number from 0 to 999999';
  assert.throws(() => parseRounds({ rounds: '1', seed: 'x' }, strikes), { message });
  for (const how of ['burnt', 'killed,burnt', '']) {
    const read = () => parseRounds({ rounds: '1', seed: '1', how }, strikes);
    assert.throws(read, { message: '--how takes killed, frozen' }, how);
  }
});

test('takes the bounds themselves', () => {
  assert.equal(readCount('reads', '1', { max: 5 }), 1);
  assert.equal(readCount('reads', '5', { max: 5 }), 5);
  const message = '--reads takes a number from 1 to 5';
  assert.throws(() => readCount('reads', '6', { max: 5 }), { message });
});

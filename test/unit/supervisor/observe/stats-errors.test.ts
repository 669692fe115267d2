// The latest errors of all workers, in the order in which they happened.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxRecentErrors, type RecentError } from '../../../../src/shared/observe/stats.ts';
import { RecentErrors } from '../../../../src/supervisor/observe/stats.ts';

const errorAt = (ms: number, requestId: string): RecentError => ({
  at: new Date(ms).toISOString(),
  request_id: requestId,
  trace_id: null,
  client: null,
  user: null,
  section: null,
  named: null,
  tool: null,
  status: 400,
  code: 'BAD_REQUEST',
  errno: null,
  error_name: null,
  by_data: false,
  outcome: 'not_executed',
  shape: null,
});

const idsOf = ({ latest }: RecentErrors) => latest.map(({ request_id }) => request_id);

test('lists the latest first, whichever worker reports it, and keeps no more than a list has', () => {
  const errors = new RecentErrors();
  errors.add(0, [errorAt(1, 'first'), errorAt(3, 'third')]);
  errors.add(1, [errorAt(2, 'second')]);
  assert.deepEqual(idsOf(errors), ['third', 'second', 'first']);
  const many = Array.from({ length: maxRecentErrors }, (_, n) => errorAt(10 + n, `more-${n}`));
  errors.add(1, many);
  assert.equal(errors.latest.length, maxRecentErrors);
  assert.equal(errors.latest[0]?.request_id, `more-${maxRecentErrors - 1}`);
  assert.equal(errors.latest.at(-1)?.request_id, 'more-0');
});

test('lists the latest first within a millisecond too', () => {
  const errors = new RecentErrors();
  errors.add(0, [errorAt(7, 'first'), errorAt(7, 'second')]);
  errors.add(0, [errorAt(7, 'third'), errorAt(7, 'fourth')]);
  assert.deepEqual(idsOf(errors), ['fourth', 'third', 'second', 'first']);
});

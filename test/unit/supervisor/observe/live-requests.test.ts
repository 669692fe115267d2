// The answers of all workers become one list, whose numbers lead back to one worker process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LiveRequest } from '../../../../src/shared/observe/stats.ts';
import {
  joinRequests,
  parseRequestName,
} from '../../../../src/supervisor/observe/live-requests.ts';

const request = (id: number, age_ms: number): LiveRequest => ({
  id,
  request_id: `r${id}`,
  trace_id: null,
  age_ms,
  phase: 'running',
  client: 'default',
  user: null,
  address: null,
  backend: null,
  section: 'world',
  named: null,
  tool: null,
  shape: null,
});

test('the oldest first, from any worker; a worker that has not answered is named', () => {
  const reported = joinRequests([
    { slot: 0, pid: 10, live: { requests: [request(1, 50), request(2, 5)], omitted: 3 } },
    { slot: 1, pid: 11, live: null },
    { slot: 2, pid: 12, live: { requests: [request(1, 20)], omitted: 0 } },
  ]);
  assert.deepEqual(
    reported.requests.map(({ id, worker }) => [id, worker]),
    [
      ['0-10-1', 0],
      ['2-12-1', 2],
      ['0-10-2', 0],
    ],
  );
  assert.equal(reported.omitted, 3);
  assert.deepEqual(reported.silent_workers, [1]);
});

test('a number leads back, and nothing else is one', () => {
  assert.deepEqual(parseRequestName('2-12-7'), { slot: 2, pid: 12, id: 7 });
  for (const other of [
    '',
    '2-12',
    '2-12-7-1',
    '-1-2-3',
    'a-b-c',
    '1-2-3 ',
    '1-2-99999999999999999999',
  ]) {
    assert.equal(parseRequestName(other), null, other);
  }
});

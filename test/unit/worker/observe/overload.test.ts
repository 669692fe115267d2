// The log of an overload: its beginning, every ten seconds of it, and its end with the sums.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log, LogFields } from '../../../../src/shared/process/log.ts';
import { Overload } from '../../../../src/worker/observe/overload.ts';

function create() {
  const lines: (readonly [message: string, fields: LogFields | undefined])[] = [];
  const ignore = () => {};
  const warn: Log['warn'] = (message, fields) => void lines.push([message, fields]);
  const log: Log = { error: ignore, warn, info: ignore, debug: null, reopen: ignore };
  return { lines, overload: new Overload(log, () => ({ waiting: 7 })) };
}

test('35,264 rejections in 25 seconds are five lines', () => {
  const { lines, overload } = create();
  const refusals = 35_264;
  for (let n = 0; n < refusals; n += 1) {
    const now = Math.floor((n * 25_000) / refusals);
    overload.observe(n % 4 === 0 ? 'QUEUE_FULL' : 'WAITED_TOO_LONG', 'default', now);
    overload.check(now);
  }
  for (let now = 25_000; now <= 60_000; now += 1000) overload.check(now);
  overload.end();
  assert.deepEqual(
    lines.map(([message]) => message),
    [
      'an overload begins: requests are rejected, because too many wait',
      'the overload goes on: requests are rejected, because too many wait',
      'the overload goes on: requests are rejected, because too many wait',
      'the overload goes on: requests are rejected, because too many wait',
      'the overload has ended',
    ],
  );
  const [begins, first, second, third, ended] = lines.map(([, fields]) => fields);
  assert.deepEqual(begins, { code: 'QUEUE_FULL', waiting: 7 });
  const parts = [first, second, third].map((fields) => Number(fields?.rejected));
  assert.equal(
    parts.reduce((sum, part) => sum + part, 0),
    refusals,
  );
  assert.deepEqual(ended, {
    rejected: refusals,
    queue_full: refusals / 4,
    waited_too_long: (refusals * 3) / 4,
    lasted_s: 25,
    waiting: 7,
  });
});

test('a normal load is not reported', () => {
  const { lines, overload } = create();
  for (const code of [null, 'DEADLINE_RUNNING', 'DATABASE_UNREACHABLE', 'STOPPING'] as const) {
    overload.observe(code, 'default', 0);
  }
  overload.check(10_000);
  overload.end();
  assert.deepEqual(lines, []);
});

test('an overload that lasts when the worker stops has its sums in the log', () => {
  const { lines, overload } = create();
  overload.observe('WAITED_TOO_LONG', 'default', 0);
  overload.end();
  assert.deepEqual(lines[1], [
    'the overload has ended',
    { rejected: 1, queue_full: 0, waited_too_long: 1, lasted_s: 0, waiting: 7 },
  ]);
});

test('where clients are configured, each line says whose requests were rejected', () => {
  const { lines, overload } = create();
  overload.observe('CLIENT_BUSY', 'loud', 0);
  for (let n = 0; n < 3; n += 1) overload.observe('QUEUE_FULL', 'report', n);
  overload.observe('WAITED_TOO_LONG', 'loud', 5);
  overload.end();
  assert.deepEqual(
    lines.map(([, fields]) => fields),
    [
      { code: 'CLIENT_BUSY', client: 'loud', waiting: 7 },
      {
        rejected: 5,
        client_busy: 1,
        queue_full: 3,
        waited_too_long: 1,
        clients: 'report=3 loud=2',
        lasted_s: 0,
        waiting: 7,
      },
    ],
  );
});

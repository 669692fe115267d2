// Errors of MySQL's as failures: the statuses of the contract, and whether to repeat.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mysqlFailures } from '../../../../src/shared/failure-codes.ts';
import type { Outcome } from '../../../../src/worker/failure/failure.ts';
import { serverFailure } from '../../../../src/worker/failure/server-failure.ts';

const outcomes: readonly Outcome[] = [
  'not_executed',
  'failed',
  'partial',
  'rolled_back',
  'unknown',
];

const write = { isReadOnly: false, isRead: false };
const read = { isReadOnly: false, isRead: true };

/** An error, with the servers' message where that matters. */
const serverError = (errno: number, message = 'refused') => ({ errno, sqlState: 'HY000', message });

const optionError = (option: string) =>
  serverError(
    1290,
    `The MariaDB server is running with the ${option} option so it cannot execute this statement`,
  );

const refused = (
  error: Parameters<typeof serverFailure>[0],
  outcome: Outcome = 'failed',
  work = write,
) => serverFailure(error, work, outcome);

const statusOf = (errno: number) => refused(serverError(errno)).status;

test("gives each of MySQL's errors the status that is promised", () => {
  const promised: Readonly<Record<number, readonly number[]>> = {
    403: [1044, 1142, 1143, 1227],
    409: [1062, 1216, 1217, 1451, 1452, 1213, 1205, 1020],
    413: [1153],
    503: [1040, 1203, 1226, 1045, 1047, 1836, 3100],
    504: [1317, 3024, 1969],
  };
  const named = new Set(Object.values(promised).flat());
  for (const [status, numbers] of Object.entries(promised)) {
    for (const errno of numbers) assert.equal(statusOf(errno), Number(status), `${errno}`);
  }
  const others = Array.from({ length: 5000 }, (_, errno) => errno).filter(
    (errno) => !named.has(errno) && errno !== 1792,
  );
  for (const errno of others) assert.equal(statusOf(errno), 422, `${errno}`);
});

test('a write in a read-only request is refused; on a server that has become read-only it may be repeated', () => {
  const asked = refused(serverError(1792), 'failed', { ...write, isReadOnly: true });
  assert.deepEqual([asked.status, asked.mayRepeat], [403, false]);
  const unasked = refused(serverError(1792));
  assert.deepEqual([unasked.status, unasked.mayRepeat], [503, true]);
  for (const option of ['--read-only', '--super-read-only', '--innodb-read-only', 'read_only']) {
    const { status, mayRepeat } = refused(optionError(option));
    assert.deepEqual([status, mayRepeat], [503, true], option);
  }
  for (const option of ['--secure-file-priv', '--skip-grant-tables']) {
    const { status, mayRepeat } = refused(optionError(option));
    assert.deepEqual([status, mayRepeat], [422, false], option);
  }
});

test('a client of a former primary of a group may repeat its request; 4094 of MariaDB means something else', () => {
  // The text of MySQL 9.7.
  const text =
    "All queries have been blocked while function 'group_replication_set_as_primary()' is executing. Please refer timeout parameter of function 'group_replication_set_as_primary()'.";
  const blocked = refused(serverError(4094, text));
  assert.deepEqual([blocked.status, blocked.mayRepeat, blocked.retryAfterSeconds], [503, true, 1]);
  const other = refused(serverError(4094));
  assert.deepEqual([other.status, other.mayRepeat], [422, false]);
});

test('every 503 tells the client to wait for a second, and no other status does', () => {
  for (const { errno } of mysqlFailures) {
    const { status, retryAfterSeconds } = refused(serverError(errno));
    assert.equal(retryAfterSeconds, status === 503 ? 1 : undefined, `${errno}`);
  }
});

/** Whether a refused request may be repeated, with each outcome: as a write, and as a read. */
function repeatable(errno: number): readonly string[] {
  return Object.entries({ write, read }).flatMap(([kind, work]) =>
    outcomes
      .filter((outcome) => refused(serverError(errno), outcome, work).mayRepeat)
      .map((outcome) => `${kind} ${outcome}`),
  );
}

test('calls retryable what MySQL has undone or not begun, unless a part of the request remains', () => {
  const safe = ['not_executed', 'failed', 'rolled_back'];
  const expected = [...safe.map((one) => `write ${one}`), ...safe.map((one) => `read ${one}`)];
  const undone = [1213, 1205, 1020, 1412, 3101, 3572];
  for (const errno of [...undone, 1040, 1203, 1226, 1045, 1047, 1836, 3024, 3100]) {
    assert.deepEqual(repeatable(errno), expected, `${errno}`);
  }
});

test('calls an interrupted statement retryable only if nothing can have been applied', () => {
  for (const errno of [1317, 1969, 1053, 1927]) {
    assert.deepEqual(
      repeatable(errno),
      [
        'write not_executed',
        'write rolled_back',
        'read not_executed',
        'read failed',
        'read rolled_back',
      ],
      `${errno}`,
    );
  }
});

test('never calls retryable what would be refused again', () => {
  const again = [1044, 1142, 1143, 1227, 1062, 1216, 1217, 1451, 1452, 1153, 1064, 1146, 1180];
  for (const errno of again) assert.deepEqual(repeatable(errno), [], `${errno}`);
});

// The statements about one attempt's row in the table of keys, with a real server: they count for this attempt alone, and show what is
// committed. The gateway cannot be stopped between two transactions, so the test runs the statements itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Connection } from 'mysql2/promise';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Log } from '../../../src/shared/process/log.ts';
import { KeyAttempt, KeyStore } from '../../../src/worker/execution/idempotency/key-store.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({
  prepare: async (own) => {
    await own.query(describeCreation(parseIdempotencyTable('request_keys', own.name)));
  },
});

const owner = { commitTimeoutMs: 0, isRecovering: false };

const attemptOf = (digit: string) => {
  const keys = new KeyStore(parseIdempotencyTable('request_keys', database.name), {
    warn: () => {},
    error: () => {},
  } as unknown as Log);
  return new KeyAttempt(keys, { id: digit.repeat(64), request: 'ab'.repeat(32) }, null, owner);
};

test('an attempt completes its own row, and never that of another attempt at the same key', async () => {
  const [mine, other] = [attemptOf('1'), attemptOf('1')];
  await database.query(mine.insertion);
  const replies = () => database.query('select cast(reply as char) reply from request_keys');
  await database.query(other.completion(Buffer.from('of the other')));
  assert.deepEqual(await replies(), [{ reply: null }]);
  await database.query(mine.completion(Buffer.from('mine')));
  assert.deepEqual(await replies(), [{ reply: 'mine' }]);
  await database.query('delete from request_keys');
});

/** By default, MariaDB 11.6 and later refuse a row that has changed since the snapshot (1020). Earlier ones and MySQL do not. */
async function refuseNoOldSnapshot(asking: Connection): Promise<void> {
  const [found] = await asking.query("show variables like 'innodb_snapshot_isolation'");
  if ((found as unknown[]).length === 0) return;
  await asking.query('set session innodb_snapshot_isolation = off');
}

test('a look-up sees what is committed now, whatever snapshot its session has', async () => {
  const attempt = attemptOf('2');
  const asking = await database.connect();
  await asking.query('set session transaction isolation level repeatable read');
  await refuseNoOldSnapshot(asking);
  await asking.query('start transaction');
  // The snapshot is taken here.
  await asking.query('select * from request_keys');
  await database.query(attempt.insertion);
  const [found] = await asking.query(attempt.lookUp);
  assert.equal((found as unknown[]).length, 1);
  await asking.query('rollback');
  await database.query('delete from request_keys');
});

test('a look-up does not see an uncommitted row: it waits for the end of its transaction', async () => {
  const attempt = attemptOf('3');
  const writing = await database.connect();
  await writing.query('start transaction');
  await writing.query(attempt.insertion);
  const asking = await database.connect();
  await asking.query('set session transaction isolation level read uncommitted');
  await asking.query('set session innodb_lock_wait_timeout = 1');
  await assert.rejects(asking.query(attempt.lookUp), { errno: 1205 });
  await writing.query('rollback');
  const [found] = await asking.query(attempt.lookUp);
  assert.deepEqual(found, []);
});

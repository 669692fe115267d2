// The statements of one attempt's row in the table of keys, before a real server: they count for this attempt alone, and tell what is committed.
// Moments between two transactions cannot be had through the gateway: the statements are run by themselves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeCreation, parseLedgerTable } from '../../../src/shared/idempotency-table.ts';
import { LedgerEntry } from '../../../src/worker/execution/idempotency/ledger-entry.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({
  prepare: async (own) => {
    await own.query(describeCreation(parseLedgerTable('request_keys', own.name)));
  },
});

const entryOf = (digit: string) =>
  new LedgerEntry(parseLedgerTable('request_keys', database.name), {
    id: digit.repeat(64),
    request: 'ab'.repeat(32),
  });

test('an attempt completes its own row, and never that of another attempt at the same key', async () => {
  const [mine, other] = [entryOf('1'), entryOf('1')];
  await database.query(mine.insertion);
  const replies = () => database.query('select cast(reply as char) reply from request_keys');
  await database.query(other.completion(Buffer.from('of the other')));
  assert.deepEqual(await replies(), [{ reply: null }]);
  await database.query(mine.completion(Buffer.from('mine')));
  assert.deepEqual(await replies(), [{ reply: 'mine' }]);
  await database.query('delete from request_keys');
});

test('a look-up tells what is committed now, whatever snapshot its session has', async () => {
  const entry = entryOf('2');
  const asking = await database.connect();
  await asking.query('set session transaction isolation level repeatable read');
  await asking.query('start transaction');
  // The snapshot is taken here.
  await asking.query('select * from request_keys');
  await database.query(entry.insertion);
  const [found] = await asking.query(entry.lookUp);
  assert.equal((found as unknown[]).length, 1);
  await asking.query('rollback');
  await database.query('delete from request_keys');
});

test('a look-up tells nothing of a row that is not committed: it waits for what becomes of it', async () => {
  const entry = entryOf('3');
  const writing = await database.connect();
  await writing.query('start transaction');
  await writing.query(entry.insertion);
  const asking = await database.connect();
  await asking.query('set session transaction isolation level read uncommitted');
  await asking.query('set session innodb_lock_wait_timeout = 1');
  await assert.rejects(asking.query(entry.lookUp), { errno: 1205 });
  await writing.query('rollback');
  const [found] = await asking.query(entry.lookUp);
  assert.deepEqual(found, []);
});

// The table of idempotency keys in --check: the missing GRANT, unknown rights, commits that a crash may undo.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseIdempotencyTable } from '../../../../src/shared/database/idempotency-table.ts';
import { findVolatility, judgeRights } from '../../../../src/supervisor/check/idempotency-table.ts';

const table = parseIdempotencyTable('keys', 'world');
const judge = (refusals: Readonly<Record<string, number | null>>, isSound = true) => {
  const attempts = Object.entries(refusals).map(([right, errno]) => ({
    right,
    refusal: errno === null ? null : { errno, message: 'no' },
  }));
  return judgeRights(attempts, table, "o'brien@10.%", isSound);
};

test('one GRANT has all rights that are missing, and its account in quotes', () => {
  assert.deepEqual(judge({ SELECT: null, INSERT: 1142, UPDATE: 1143, DELETE: 1044 }), {
    faults: [
      "the account lacks rights: GRANT INSERT, UPDATE, DELETE ON `world`.`keys` TO 'o''brien'@'10.%'",
    ],
    warnings: [],
  });
  assert.deepEqual(judge({ SELECT: null, INSERT: null }), { faults: [], warnings: [] });
});

test('a read-only server leaves rights unknown, which is a warning and no fault', () => {
  for (const errno of [1290, 1792, 1836]) {
    const { faults, warnings } = judge({ SELECT: null, INSERT: errno, UPDATE: errno });
    assert.deepEqual(faults, []);
    assert.match(
      warnings.join(),
      /could not find out whether the account has the rights INSERT, UPDATE:/,
    );
  }
});

test('another refusal is reported if the table itself is not its reason', () => {
  assert.deepEqual(judge({ INSERT: 1047 }).faults, ['INSERT is refused: no (1047)']);
  assert.deepEqual(judge({ INSERT: 1146, UPDATE: 1054 }, false).faults, []);
});

test('does not warn of a server that writes to disk at each commit', () => {
  const settingsOf = (volatile: readonly string[]) =>
    volatile.map((text) => text.slice(0, text.indexOf(':')));
  const volatile = (flush: string, isLogged: string, sync: string) =>
    settingsOf(findVolatility([flush, isLogged, sync]));
  assert.deepEqual(volatile('1', '1', '1'), []);
  assert.deepEqual(volatile('1', '0', '0'), []);
  assert.deepEqual(volatile('3', '0', '0'), []);
  assert.deepEqual(volatile('2', '0', '0'), ['innodb_flush_log_at_trx_commit is 2, not 1']);
  assert.deepEqual(volatile('0', '1', '100'), [
    'innodb_flush_log_at_trx_commit is 0, not 1',
    'sync_binlog is 100, not 1, with a binary log',
  ]);
  assert.deepEqual(findVolatility([]), []);
});

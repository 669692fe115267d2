// Statements that begin, end or configure a transaction, in any spelling.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { decodeTransactionStatement } from '../../../../src/shared/sql/transactions.ts';

const decode = (sql: string) => decodeTransactionStatement(analyse(sql));

const begin = (isReadOnly: boolean | null = null, withConsistentSnapshot = false) => {
  return { kind: 'begin', isReadOnly, withConsistentSnapshot } as const;
};
const set = (scope: 'next' | 'session', isolation: string | null, isReadOnly: boolean | null) => {
  return { kind: 'set', scope, characteristics: { isolation, isReadOnly } } as const;
};

test('a transaction begins in each of the ways that MySQL knows', () => {
  for (const [sql, expected] of [
    ['BEGIN', begin()],
    ['begin work;', begin()],
    ['/* by tracing */ Begin -- now\n', begin()],
    ['start transaction', begin()],
    ['START TRANSACTION READ ONLY', begin(true)],
    ['START TRANSACTION READ WRITE ;', begin(false)],
    ['start  transaction\nwith consistent snapshot , read only', begin(true, true)],
  ] as const) {
    assert.deepEqual(decode(sql), expected, sql);
  }
});

test('COMMIT and ROLLBACK end it, ROLLBACK TO does not', () => {
  for (const sql of ['commit', 'COMMIT WORK;', 'COMMIT AND NO CHAIN NO RELEASE']) {
    assert.deepEqual(decode(sql), { kind: 'commit' }, sql);
  }
  for (const sql of ['rollback', 'ROLLBACK WORK', 'rollback no release']) {
    assert.deepEqual(decode(sql), { kind: 'rollback' }, sql);
  }
  for (const sql of [
    'ROLLBACK TO a',
    'ROLLBACK TO SAVEPOINT a',
    'SAVEPOINT a',
    'RELEASE SAVEPOINT a',
  ]) {
    assert.deepEqual(decode(sql), { kind: 'ordinary' }, sql);
  }
});

test('SET TRANSACTION sets level and access, for the next transaction or for all of the session', () => {
  for (const [sql, expected] of [
    ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', set('next', 'read committed', null)],
    ['set session transaction isolation level serializable', set('session', 'serializable', null)],
    ['SET LOCAL TRANSACTION READ ONLY', set('session', null, true)],
    [
      'SET TRANSACTION READ WRITE, ISOLATION LEVEL REPEATABLE READ;',
      set('next', 'repeatable read', false),
    ],
  ] as const) {
    assert.deepEqual(decode(sql), expected, sql);
  }
});

test('a statement that request sessions cannot execute is reported, not done by half', () => {
  for (const sql of [
    'COMMIT AND CHAIN',
    'ROLLBACK RELEASE',
    'commit work and no chain release',
    'SET autocommit = 0',
    'set session autocommit=off',
    'SET @@autocommit = 0',
    'SET @@session.autocommit := false',
    'SET @a = 1, autocommit = 0',
    'SET autocommit = 0, @a = 1',
    'SET `autocommit` = 0',
    'SET @@session.`AutoCommit` = 0;',
    "SET @a = 'it\\'s', autocommit = 0",
    'SET @a = greatest(1, 2), SESSION sql_mode = "", autocommit = OFF',
    `SET @a = ${'1 + '.repeat(1000)} 1, autocommit = 0`,
    "XA START 'a'",
  ]) {
    assert.equal(decode(sql).kind, 'unsupported', sql);
  }
});

test('anything else is ordinary, even if a server would refuse it', () => {
  for (const sql of [
    '',
    'SELECT 1',
    'BEGIN NOT ATOMIC select 1; END',
    'BEGIN; DROP TABLE t',
    '/*!BEGIN*/',
    'BEGIN /*! WORK */',
    'SET GLOBAL TRANSACTION READ ONLY',
    'SET TRANSACTION ISOLATION LEVEL CHAOS',
    'START TRANSACTION READ',
    'START SLAVE',
    'SET autocommit = 1',
    'SET @autocommit = 0',
    'SET GLOBAL autocommit = 0',
    'SET @a = 1, autocommit = 1',
    "SET @a = ', autocommit = 0'",
    'SET @a = ((select 1), autocommit = 0)',
    'UPDATE t SET a = 1, autocommit = 0',
    "SET @a = 'autocommit = 0'",
    "SET @a = 'b , autocommit = 0'",
    'SET @a = 0, autocommit = 1',
    "COMMIT 'never closed",
    `SET @a = ${'1 + '.repeat(1000)} 1`,
  ]) {
    assert.deepEqual(decode(sql), { kind: 'ordinary' }, sql);
  }
});

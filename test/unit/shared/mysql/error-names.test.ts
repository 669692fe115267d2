// Names of errors: those of mysql2's table if both servers mean the same, MariaDB's own, and never a wrong one.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorName } from '../../../../src/shared/mysql/error-names.ts';

/** mysql2's names of MySQL's errors; its package does not export the file. */
const theirs = new Map(
  [
    ...readFileSync('node_modules/mysql2/lib/constants/errors.js', 'utf8').matchAll(
      /^exports\.(\w+) = (\d+);$/gm,
    ),
  ].map(([, name = '', errno]) => [Number(errno), name]),
);

/** Numbers that MySQL does not use any more, by MariaDB's name; and those that the servers use differently. */
const otherwise: ReadonlyMap<number, string> = new Map([
  [1076, 'ER_1076'],
  [1150, 'ER_DELAYED_CANT_CHANGE_LOCK'],
  [1151, 'ER_TOO_MANY_DELAYED_THREADS'],
  [1165, 'ER_DELAYED_INSERT_TABLE_LOCKED'],
  [1487, 'ER_1487'],
  [1608, 'ER_1608'],
  [1669, 'ER_BINLOG_UNSAFE_INSERT_DELAYED'],
  [1726, 'ER_1726'],
  [1834, 'ER_FK_CANNOT_DELETE_PARENT'],
  [1852, 'ER_ALTER_OPERATION_NOT_SUPPORTED_REASON_IGNORE'],
]);

test("gives MySQL's name if MariaDB means the same or nothing by the number", () => {
  const numbers = [...theirs.keys()].filter((errno) => errno >= 1000 && errno < 4000);
  assert.ok(numbers.length > 1500, `${numbers.length} names of mysql2`);
  for (const errno of numbers) {
    assert.equal(errorName(errno), otherwise.get(errno) ?? theirs.get(errno), `${errno}`);
  }
});

test("gives MariaDB's name of an error that MySQL does not have", () => {
  const names = [1901, 1912, 1918, 1927, 1931, 1964, 1969, 1974, 1982].map(errorName);
  assert.deepEqual(names, [
    'ER_GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED',
    'ER_BAD_OPTION_VALUE',
    'ER_BAD_DATA',
    'ER_CONNECTION_KILLED',
    'ER_QUERY_RESULT_INCOMPLETE',
    'ER_PRIOR_COMMIT_FAILED',
    'ER_STATEMENT_TIMEOUT',
    'ER_USER_DROP_EXISTS',
    'WARN_INNODB_PARTITION_OPTION_IGNORED',
  ]);
});

test('the number is the name if the servers differ, or no name is known', () => {
  const unnamed = [0, 999, 1888, 1900, 1983, 1999, 2000, 2013, 3239, 3499, 4025, 4031, 4151, 65535];
  for (const errno of unnamed) assert.equal(errorName(errno), `ER_${errno}`);
});

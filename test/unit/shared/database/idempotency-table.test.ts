// The table of idempotency keys: its name, its statement, and which differences matter, as each server's catalogue words them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeCreation,
  findDifferences,
  parseIdempotencyTable,
  type TableDescription,
} from '../../../../src/shared/database/idempotency-table.ts';

/** MariaDB's report. MySQL reports null in place of 'NULL'. */
const sound: TableDescription = {
  table: ['BASE TABLE', 'InnoDB'],
  columns: [
    ['id', 'binary(32)', 'NO', null, ''],
    ['request', 'binary(32)', 'NO', null, ''],
    ['attempt', 'binary(16)', 'NO', null, ''],
    ['reply', 'mediumblob', 'YES', 'NULL', ''],
    ['created', 'datetime(3)', 'NO', null, ''],
  ],
  keys: [
    ['PRIMARY', 'id', '1', '0', null],
    ['created', 'created', '1', '1', null],
  ],
  triggers: [],
};
const withColumn = (...column: (string | null)[]) =>
  findDifferences({
    ...sound,
    columns: [...sound.columns.filter(([name]) => name !== column[0]), column],
  });

test('a table belongs to the database of the section, unless its name has another one', () => {
  assert.deepEqual(parseIdempotencyTable('keys', 'a.b`c'), {
    schema: 'a.b`c',
    name: 'keys',
    quoted: '`a.b``c`.`keys`',
  });
  assert.deepEqual(parseIdempotencyTable("ops-1.it's", 'world'), {
    schema: 'ops-1',
    name: "it's",
    quoted: "`ops-1`.`it's`",
  });
});

test('the statement that creates it has its full name, and ends in a semicolon', () => {
  const statement = describeCreation(parseIdempotencyTable('keys', 'world'));
  assert.match(statement, /^CREATE TABLE `world`\.`keys` \(\n( {2}.+\n)+\) ENGINE=InnoDB;$/);
});

test('a table as the gateway creates it has no faults, on either server', () => {
  assert.deepEqual(findDifferences(sound), []);
  assert.deepEqual(withColumn('reply', 'mediumblob', 'YES', null, ''), []);
});

test('a column that the gateway does not know must have a value by itself', () => {
  const fault = ["the column more is none of the gateway's, and has no default"];
  assert.deepEqual(withColumn('more', 'int', 'NO', null, ''), fault);
  assert.deepEqual(withColumn('more', 'int', 'NO', null, 'INVISIBLE'), fault);
  assert.deepEqual(
    withColumn('more', 'datetime', 'NO', null, 'on update CURRENT_TIMESTAMP'),
    fault,
  );
  assert.deepEqual(withColumn('more', 'int', 'YES', 'NULL', ''), []);
  assert.deepEqual(withColumn('more', 'varchar(9)', 'NO', '', ''), []);
  assert.deepEqual(withColumn('more', 'int', 'NO', null, 'auto_increment'), []);
  assert.deepEqual(withColumn('more', 'int', 'NO', null, 'VIRTUAL GENERATED'), []);
  assert.deepEqual(withColumn('more', 'char(36)', 'NO', 'uuid()', 'DEFAULT_GENERATED'), []);
});

test("a value that the server would write into the gateway's columns is a fault; a default is none", () => {
  assert.deepEqual(
    withColumn('created', 'datetime(3)', 'NO', null, 'on update CURRENT_TIMESTAMP(3)'),
    [
      'the column created is datetime(3) NOT NULL on update current_timestamp(3), not datetime(3) NOT NULL',
    ],
  );
  assert.deepEqual(
    withColumn('created', 'datetime(3)', 'NO', 'CURRENT_TIMESTAMP(3)', 'DEFAULT_GENERATED'),
    [],
  );
});

test('an account that may only DELETE sees no columns: they are not said to be missing', () => {
  assert.deepEqual(findDifferences({ ...sound, columns: [] }), [
    'the account may not see its columns',
  ]);
});

test('each further unique index is named once, and an index on an expression is passed over', () => {
  const further = [
    ['both', 'request', '1', '0', null],
    ['both', 'attempt', '2', '0', null],
    ['ignored', null, '1', '1', null],
  ];
  assert.deepEqual(findDifferences({ ...sound, keys: [...sound.keys, ...further] }), [
    'it has a further unique index, both',
  ]);
});

test('a view has no further faults', () => {
  assert.deepEqual(findDifferences({ ...sound, table: ['VIEW', null], keys: [] }), [
    'it is not a base table: VIEW',
  ]);
  assert.deepEqual(findDifferences({ ...sound, table: undefined, columns: [] }), [
    'it does not exist, or the account may not see it',
  ]);
});

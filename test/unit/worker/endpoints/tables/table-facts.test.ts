// The results of `describe`, made of the server's rows.
import assert from 'node:assert/strict';
import test from 'node:test';
import {
  describeTable,
  describeTables,
} from '../../../../../src/worker/endpoints/tables/table-facts.ts';

const table = (estimate: number | null, type = 'BASE TABLE') => [
  'orders',
  type,
  'InnoDB',
  estimate,
  'all of them',
  null,
];
const facts = (...rows: readonly (readonly unknown[])[]) =>
  JSON.parse(describeTable(rows, 1_000_000) ?? 'null') as Record<string, never> & {
    columns: { rows: unknown[][] };
    indexes: { rows: unknown[][] };
    foreign_keys: { rows: unknown[][] };
    referenced_by: { rows: unknown[][] };
  };

test('columns, parts of keys and of indexes are in their own order, whatever the order of the rows', () => {
  const found = facts(
    ['c', 2, 'b', 'int', 'YES', 'NULL', '', ''],
    ['i', 2, 'k', 'b', 1, null, 'BTREE', null],
    ['f', 2, 'fk', 'b', 's', 'other', 'y', null],
    ['t', 0, ...table(7)],
    ['i', 1, 'k', null, 1, null, 'BTREE', null],
    ['c', 1, 'a', 'int', 'NO', '5', '', ''],
    ['f', 1, 'fk', 'a', 's', 'other', 'x', null],
  );
  assert.deepEqual(found.columns.rows, [
    ['a', 'int', false, '5', '', ''],
    ['b', 'int', true, null, '', ''],
  ]);
  assert.deepEqual(found.indexes.rows, [['k', false, ['(expression)', 'b'], 'BTREE']]);
  assert.deepEqual(found.foreign_keys.rows, [['fk', ['a', 'b'], 'other', ['x', 'y']]]);
});

test('keys of the same name in two tables stay apart', () => {
  const found = facts(
    ['t', 0, ...table(7)],
    ['r', 1, 'fk', 'id', 's', 'one', 'x', null],
    ['r', 1, 'fk', 'id', 's', 'two', 'y', null],
  );
  assert.deepEqual(found.referenced_by.rows, [
    ['fk', ['id'], 'one', ['x']],
    ['fk', ['id'], 'two', ['y']],
  ]);
});

test('nothing is made of no rows, and what does not fit is left out and counted', () => {
  assert.equal(describeTable([], 1000), null);
  const columns = Array.from({ length: 100 }, (_, at) => [
    ...['c', at, `column_${at}`, 'int', 'NO', null, ''],
    'x'.repeat(500),
  ]);
  const cut = describeTable([['t', 0, ...table(1)], ...columns], 2000) ?? '';
  const { truncated, columns: shown } = JSON.parse(cut) as {
    truncated: boolean;
    columns: { rows: string[][] };
  };
  assert.equal(truncated, true);
  assert.ok(shown.rows.length > 3 && shown.rows.length < 20);
  assert.equal(shown.rows[0]?.[5], `${'x'.repeat(200)}…`);
  const names = Array.from({ length: 50 }, (_, at) => ({ name: `table_${at}`, isView: false }));
  const list = JSON.parse(describeTables(names, 'TABLE_', 300, null)) as Record<string, unknown>;
  assert.deepEqual([list.total, list.truncated], [50, true]);
});

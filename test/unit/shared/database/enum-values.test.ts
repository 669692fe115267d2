// The values of ENUM columns, from the text by which a server describes the type.
import assert from 'node:assert/strict';
import test from 'node:test';
import { listEnumColumns, parseEnumType } from '../../../../src/shared/database/enum-values.ts';

function valuesOf(type: string): readonly string[] | null {
  const values = parseEnumType(type);
  return values === null ? null : [...values];
}

test('values are separated by commas outside of quotes, and quotes are doubled', () => {
  assert.deepEqual(valuesOf("enum('open','paid')"), ['open', 'paid']);
  assert.deepEqual(valuesOf("enum('it''s','a,b','','('')')"), ["it's", 'a,b', '', "(')"]);
});

test('control characters and backslashes are escaped whatever the sql_mode is', () => {
  assert.deepEqual(valuesOf(String.raw`enum('a\\b','n\nl','r\r','z\0','\\n')`), [
    'a\\b',
    'n\nl',
    'r\r',
    'z\0',
    '\\n',
  ]);
});

test('other types have no values', () => {
  assert.equal(valuesOf("set('a','b')"), null);
  assert.equal(valuesOf('varchar(5)'), null);
});

test('columns are found in lists and in fields of records', () => {
  const colour = { kind: 'enum of', table: 't', column: 'c' } as const;
  const list = { kind: 'list', of: colour, maxItems: 2 } as const;
  const records = { kind: 'records', fields: [{ name: 'f', type: list }], maxItems: 2 } as const;
  assert.deepEqual(listEnumColumns(records), [{ table: 't', column: 'c' }]);
  assert.deepEqual(listEnumColumns({ kind: 'uuid' }), []);
});

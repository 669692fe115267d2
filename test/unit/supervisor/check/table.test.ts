// A table of --check fits its width, and no item of a cell is lost.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatTable } from '../../../../src/supervisor/check/table.ts';
import { fc } from '../../../support/property.ts';

const headings = ['client', 'may'];

test('a table that fits is as wide as its texts', () => {
  const rows = [
    [['web'], ['sql', 'batch']],
    [['dashboard'], ['observe']],
  ];
  assert.deepEqual(formatTable(headings, rows, 40), [
    'client     may',
    'web        sql, batch',
    'dashboard  observe',
  ]);
});

test('a wide column continues on the next line, between its items', () => {
  const rows = [[['web'], ['sql', 'batch', 'transaction']]];
  assert.deepEqual(formatTable(headings, rows, 20), [
    'client  may',
    'web     sql, batch,',
    '        transaction',
  ]);
});

test('an item that fits nowhere is cut, behind a space if it has one', () => {
  const rows = [[['a-very-long-name'], ['max_rows 10', 'b']]];
  assert.deepEqual(formatTable(headings, rows, 18), [
    'client    may',
    'a-very-l  max_rows',
    'ong-name  10, b',
  ]);
});

test('no table is wider than its room, and none loses a character', () => {
  const item = fc.stringMatching(/^[a-z_]{1,30}( [0-9]{1,9})?$/);
  const row = fc.tuple(...headings.map(() => fc.array(item, { maxLength: 6 })));
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 8 }),
      fc.integer({ min: 16, max: 80 }),
      (rows, width) => {
        const lines = formatTable(headings, rows, width);
        const shown = lines.join('').replaceAll(' ', '');
        const given = [headings.map((one) => [one]), ...rows].flat().map((cell) => cell.join(','));
        assert.ok(lines.every((line) => line.length <= width && line === line.trimEnd()));
        const sort = (text: string) => [...text].sort().join('');
        assert.equal(sort(shown), sort(given.join('').replaceAll(' ', '')));
      },
    ),
  );
});

// A result as CSV. That it is as the gateway writes it is seen in the browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeCsv } from '../../../src/console/csv.ts';

test('quotes what must be quoted, tells NULL from an empty text, and keeps digits', () => {
  const columns = ['a', 'b, c', ''].map((name) => ({ name, type: '' }));
  const lines = ['[9007199254740993,"x\\n\\"y\\"",null]', '["","plain",1.50]'];
  const text = 'a,"b, c",""\r\n9007199254740993,"x\n""y""",\r\n"",plain,1.50\r\n';
  assert.equal(writeCsv({ columns, lines }), text);
  assert.equal(writeCsv({ columns, lines: [] }), 'a,"b, c",""\r\n');
});

test('a YEAR has four digits', () => {
  const columns = [{ name: 'y', type: 'YEAR' }];
  assert.equal(writeCsv({ columns, lines: ['[0]', '[2026]'] }), 'y\r\n0000\r\n2026\r\n');
});

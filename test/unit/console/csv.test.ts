// The records of a CSV text.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeRecords } from '../../../src/console/csv.ts';

test('takes as many records as are wanted, and tells whether there are more', () => {
  const text = 'a,b\r\n1,"x\n""y"""\r\n2,\r\n3,"\r\n"\r\n';
  assert.deepEqual(takeRecords(text, 3), { text, count: 3, isCut: false });
  assert.deepEqual(takeRecords(text, 4), { text, count: 3, isCut: false });
  const two = 'a,b\r\n1,"x\n""y"""\r\n2,\r\n';
  assert.deepEqual(takeRecords(text, 2), { text: two, count: 2, isCut: true });
  assert.deepEqual(takeRecords('a,b\r\n', 1), { text: 'a,b\r\n', count: 0, isCut: false });
});

// The readers of exports in long runs: the bytes may be cut anywhere, and only the complete export passes for complete. Sends no requests.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExportReader, WrongRow } from '../../../../scripts/endurance/export-reader.ts';
import { csv, ndjson } from '../../../support/v1-streams.ts';

const expected = {
  columns: ['n', 'said'],
  row: (n: number) => [String(n), n === 2 ? null : `"é,\r\n${n}`],
};
const lines =
  '{"columns":[{"name":"n"},{"name":"said"}]}\n[0,"\\"é,\\r\\n0"]\n[1,"\\"é,\\r\\n1"]\n[2,null]\n{"end":{"row_count":3,"truncated":false}}\n';
const records = 'n,said\r\n0,"""é,\r\n0"\r\n1,"""é,\r\n1"\r\n2,\r\n';

/** Reads in pieces of a size, up to a byte. */
function read(type: string, text: string, { size = 1, upTo = Number.POSITIVE_INFINITY } = {}) {
  const bytes = Buffer.from(text).subarray(0, upTo);
  const reader = createExportReader(type, expected);
  for (let from = 0; from < bytes.length; from += size) {
    reader.take(bytes.subarray(from, from + size));
  }
  return { rows: reader.rows(), end: reader.end(upTo < Buffer.byteLength(text)) };
}

test('an export is whole in pieces of any size', () => {
  for (const size of [1, 2, 3, 7, 1000]) {
    for (const [type, text] of [
      [ndjson, lines],
      [csv, records],
    ] as const) {
      assert.deepEqual(read(type, text, { size }), { rows: 3, end: { kind: 'whole' } });
    }
  }
});

test('a cut anywhere is found, and missing last lines even without a cut', () => {
  for (const [type, text] of [
    [ndjson, lines],
    [csv, records],
  ] as const) {
    for (let upTo = 0; upTo < Buffer.byteLength(text); upTo += 1) {
      assert.equal(read(type, text, { upTo }).end.kind, 'cut');
    }
  }
  const withoutLast = lines.slice(0, lines.lastIndexOf('{"end"'));
  assert.equal(read(ndjson, withoutLast).end.kind, 'cut');
  assert.throws(() => read(csv, records.slice(0, -5)), SyntaxError);
});

test('an error in the last line is reported, and nothing may follow it', () => {
  const failed = lines.replace(/\{"end".*/, '{"error":{"code":"CONNECTION_LOST"}}');
  assert.deepEqual(read(ndjson, failed).end, { kind: 'error', code: 'CONNECTION_LOST' });
  assert.throws(() => read(ndjson, `${lines}[3,null]\n`), SyntaxError);
});

test('a row that is missing, changed or counted wrongly is found', () => {
  assert.throws(() => read(csv, records.replace('1,"""', '2,"""')), WrongRow);
  assert.throws(() => read(csv, records.replace('2,\r', '2,""\r')), WrongRow);
  assert.throws(() => read(ndjson, lines.replace('[2,null]\n', '')), WrongRow);
  assert.throws(() => read(ndjson, lines.replace('"row_count":3', '"row_count":4')), WrongRow);
});

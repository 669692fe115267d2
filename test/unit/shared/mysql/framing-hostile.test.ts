// An invalid answer ends the connection cleanly: no wrong document, no exception.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ColumnWish,
  columnPacket,
  eofPacket,
  flags,
  lengthEncoded,
  okPacket,
  resultSet,
  rowPacket,
  toBytes,
  wire,
} from '../../../support/database/mysql-answer.ts';
import { cases, fc } from '../../../support/property.ts';
import { parseStrictJson } from '../../../support/strict-json.ts';
import { transcribe, ways } from '../../support/transcript.ts';

const number = { type: wire.long, charset: wire.binary };

function isLost(payloads: readonly Buffer[], what: string): void {
  // Bytes that follow in the same chunk must not count as a part of what came before. With a long one, many rows are taken at once.
  for (const after of ['', '\xfb\xfb\xfb\xfb', '\0'.repeat(12), '\xfb'.repeat(600)]) {
    const bytes = Buffer.concat([toBytes(payloads), Buffer.from(after, 'latin1')]);
    for (const [name, way] of Object.entries(ways)) {
      const { document, lost } = transcribe([bytes], { way });
      assert.equal(document, null, `${what}, ${name}: ${document}`);
      assert.ok(lost instanceof Error, `${what}, ${name}`);
    }
  }
}

const withRow = (columns: readonly ColumnWish[], row: Buffer) => [
  ...resultSet(columns, []).slice(0, -1),
  row,
  eofPacket(),
];

test('a row that is not as long as its cells ends the connection', () => {
  const three = [number, {}, { type: wire.blob, charset: wire.binary }];
  const rows: Record<string, Buffer> = {
    'a cell missing': rowPacket(['1', 'a']),
    'all cells missing but one': rowPacket(['1']),
    'a cell too many': rowPacket(['1', 'a', 'b', 'c']),
    'a NULL too many': rowPacket(['1', 'a', 'b', null]),
    'a cell cut': rowPacket(['1', 'a', 'bcd']).subarray(0, -1),
    'a length of 2^16-1': Buffer.concat([rowPacket(['1', 'a']), Buffer.from('fcffff', 'hex')]),
    'a length of 2^24-1': Buffer.concat([rowPacket(['1', 'a']), Buffer.from('fdffffff', 'hex')]),
    'a length of 2^64-1': Buffer.concat([
      rowPacket(['1', 'a']),
      Buffer.from('feffffffffffffffff', 'hex'),
    ]),
    'a length that is cut': Buffer.concat([rowPacket(['1', 'a']), Buffer.from('fc', 'hex')]),
    'a first byte that is no length': Buffer.concat([
      rowPacket(['1', 'a']),
      Buffer.from('ff', 'hex'),
    ]),
    'nothing at all': Buffer.alloc(0),
  };
  for (const [what, row] of Object.entries(rows)) {
    isLost(withRow(three, row), what);
    const long = rowPacket(['1', 'x'.repeat(20000)]);
    if (what.startsWith('a length'))
      isLost(withRow(three, Buffer.concat([long, row.subarray(4)])), what);
  }
  isLost(withRow([{}, {}], rowPacket(['x'.repeat(20000)])), 'a cell missing from a long row');
  isLost(withRow([{}], rowPacket(['x'.repeat(20000), null])), 'a NULL too many in a long row');
});

test('a packet that is too short or unknown ends the connection', () => {
  const begin = [lengthEncoded(1), columnPacket()];
  const cases: Record<string, Buffer[]> = {
    'an empty header': [Buffer.alloc(0)],
    'an OK without status': [Buffer.from([0, 0, 0])],
    'an OK whose count is cut': [Buffer.from([0, 0xfe, 1])],
    'an error without number': [Buffer.from([0xff])],
    'a request for a local file': [Buffer.from('\xfb/etc/passwd', 'latin1')],
    'a column count that is cut': [Buffer.from([0xfc, 1])],
    'a column definition that is cut': [
      lengthEncoded(1),
      columnPacket().subarray(0, -4),
      eofPacket(),
    ],
    'a name longer than its packet': [
      lengthEncoded(1),
      Buffer.from('\x03def\xfe\xff\xff\xff\xff\xff\xff\xff\x7f', 'latin1'),
      eofPacket(),
    ],
    'an end of columns without status': [...begin, Buffer.from([0xfe, 0])],
    'no end of columns': [...begin, rowPacket(['abcdefgh'])],
    'an end of rows without status': [...begin, eofPacket(), Buffer.from([0xfe])],
  };
  for (const [what, payloads] of Object.entries(cases)) isLost(payloads, what);
});

test('never throws, and never ends a document that is not JSON, whatever bytes are changed', () => {
  const rows = [
    ['a', 'b'],
    ['', null],
    ['x'.repeat(500), 'c'],
  ];
  const good = toBytes([
    ...resultSet([{}, {}], rows, flags.autocommit | flags.more),
    okPacket(1, 2),
  ]);
  const change = fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
      const bytes = Buffer.from(good);
      for (const [at, value] of changes) bytes[at] = value;
      const expected = transcribe([bytes]);
      // Bytes of text are not judged here: any byte is a character of Latin-1.
      if (expected.document !== null) parseStrictJson(expected.document.toString('latin1'));
      for (const [name, way] of Object.entries(ways)) {
        const { document, lost } = transcribe([bytes], { way });
        assert.deepEqual([document, lost], [expected.document, expected.lost], name);
      }
    }),
    { numRuns: cases(200) },
  );
});

test('a server that sends more after its answer loses its connection, and the document is complete', () => {
  const { document, lost } = transcribe([
    Buffer.concat([toBytes([okPacket()]), toBytes([okPacket()])]),
  ]);
  assert.equal(
    document?.toString(),
    '{"RESULT":{"SUCCESS":true,"AFFECTED_ROWS":0,"INSERT_ID":0},"SERVER":"s"}',
  );
  assert.equal(lost, null);
});

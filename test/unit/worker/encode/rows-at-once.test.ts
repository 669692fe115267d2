// The promise of rows written many at once: byte for byte what is written one by one in every format, and no row that is none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  eofPacket,
  errorPacket,
  resultSet,
  rowPacket,
  toBytes,
  wire,
} from '../../../support/database/mysql-answer.ts';
import { anyCharacter, cases, fc } from '../../../support/property.ts';
import { parseStrictCsv } from '../../../support/strict-csv.ts';
import { at, JsonNumber, type JsonValue, parseStrictJson } from '../../../support/strict-json.ts';
import { takeAtOnce } from '../../support/rows-at-once.ts';
import { transcribe, type V1Kind, v1Kinds, ways } from '../../support/transcript.ts';

const { binary, utf8mb4 } = wire;
const latin1 = 8;
const json = 245;

const digits = fc.oneof(
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.double().map(String),
  fc.constantFrom('0', '-0', '007', '000', '00.10', '-007', 'inf', '-inf', 'nan', '', '-', '.5'),
  fc.integer({ min: 1, max: 1100 }).map((length) => '9'.repeat(length)),
  fc.constantFrom('1],"X":"inj', '1.', '1e', '-.5', '1e+7', '-0.0e-0', '5-', '0123456789012345678'),
  fc
    .array(fc.constantFrom(...'0123456789.-+eE",]\\\n'), { maxLength: 34 })
    .map((letters) => letters.join('')),
);
const bytes = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 60 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
  fc
    .array(
      fc.constantFrom('"', '\\', '\n', '\x01', '\x7f', 'a', 'é', '\ud7ff', 'bcdefghijklmnopq'),
      { maxLength: 40 },
    )
    .map((parts) => Buffer.from(parts.join(''))),
  fc
    .array(
      fc.constantFrom('ed', 'eda080', 'ed9fbf', '20', '22', 'c3a9', 'e8aa', 'f09f9880', 'ff'),
      {
        maxLength: 20,
      },
    )
    .map((parts) => Buffer.from(parts.join(''), 'hex')),
  fc.integer({ min: 240, max: 3000 }).map((length) => Buffer.alloc(length, 'long "')),
);
const bits = fc.uint8Array({ maxLength: 9 }).map((array) => Buffer.from(array));

const columns = [
  { wish: { type: wire.long, charset: binary }, cell: digits },
  { wish: { type: wire.double, charset: binary }, cell: digits },
  { wish: { type: wire.text, charset: utf8mb4 }, cell: bytes },
  { wish: { type: wire.text, charset: utf8mb4 }, cell: fc.string({ maxLength: 20 }) },
  { wish: { type: json, charset: binary }, cell: bytes },
  { wish: { type: wire.blob, charset: binary }, cell: bytes },
  { wish: { type: wire.bit, charset: binary }, cell: bits },
];
const foreign = { wish: { type: wire.text, charset: latin1 }, cell: bytes };

const answers = fc
  .tuple(
    fc.array(fc.constantFrom(...columns), { minLength: 1, maxLength: 12 }),
    fc.integer({ min: 0, max: 20 }),
  )
  .chain(([ordinary, chance]) => {
    const chosen = chance === 0 ? [...ordinary, foreign] : ordinary;
    const row = fc.tuple(
      ...chosen.map(({ cell }) => fc.option(cell as fc.Arbitrary<Buffer | string>)),
    );
    return fc.record({
      wishes: fc.constant(chosen.map(({ wish }, index) => ({ ...wish, name: `c"${index}` }))),
      rows: fc.array(row, { maxLength: 60 }),
    });
  });

/** Parses by the format's own rules. */
function parse(document: Buffer, kind: V1Kind | undefined): void {
  if (kind === 'csv') parseStrictCsv(document);
  else if (kind?.startsWith('lines')) linesOf(document);
  else parseStrictJson(document);
}

/** Lines of JSON, the last one ended as well. */
function linesOf(document: Buffer): JsonValue[] {
  const lines = document.toString().split('\n');
  assert.equal(lines.pop(), '');
  return lines.map((line) => parseStrictJson(line));
}

test('writes any table as row by row, however it is cut and whatever the limits', () => {
  const reading = fc.record({
    holdBytes: fc.constantFrom(1, 1024, 65536, 200_000),
    exactAsStrings: fc.boolean(),
    as: fc.constantFrom(undefined, ...v1Kinds),
    maxRows: fc.constantFrom(0, 0, 1, 7, 40),
    maxResultBytes: fc.constantFrom(0, 0, 500, 20_000),
  });
  const cuts = fc.array(fc.integer({ min: 1, max: 30_000 }), { maxLength: 30 });
  fc.assert(
    fc.property(answers, reading, cuts, ({ wishes, rows }, { as, ...limits }, sizes) => {
      const options = { ...limits, ...(as === undefined ? {} : { as }) };
      const answer = toBytes([...resultSet(wishes, rows)]);
      const chunks: Buffer[] = [];
      let rest = answer;
      for (const size of [...sizes, answer.length]) {
        chunks.push(rest.subarray(0, size));
        rest = rest.subarray(size);
      }
      const { document, how, lost } = transcribe([answer], options);
      assert.equal(lost, null);
      if (document !== null) parse(document, as);
      for (const [name, way] of Object.entries(ways)) {
        const other = transcribe(chunks, { ...options, way });
        assert.equal(other.document?.toString('latin1'), document?.toString('latin1'), name);
        assert.equal(other.how, how, name);
      }
    }),
    { numRuns: cases(150) },
  );
});

/** A cell's text; zeros before what is no number are in JSON's strings, and not in CSV. */
function shown(cell: JsonValue): JsonValue {
  const text = cell instanceof JsonNumber ? cell.text : cell;
  return typeof text === 'string' ? text.replace(/^0+(?=\d)/, '') : text;
}

test('gives the same content of any table in all formats', () => {
  fc.assert(
    fc.property(answers, fc.boolean(), ({ wishes, rows }, exactAsStrings) => {
      const chunks = [toBytes([...resultSet(wishes, rows)])];
      const read = (as: V1Kind): Buffer => {
        const { document } = transcribe(chunks, { as, exactAsStrings });
        assert.ok(document !== null);
        return document;
      };
      const names = wishes.map(({ name }) => name);
      const cellsOf = (rows: JsonValue[]) =>
        rows.map((row) =>
          (row instanceof Map ? [...row.values()] : (row as JsonValue[])).map(shown),
        );
      const namesOf = (rows: JsonValue[]) =>
        rows.map((row) => [...(row as Map<string, JsonValue>).keys()]);
      const expected = cellsOf(at(parseStrictJson(read('json')), 'rows') as JsonValue[]);
      const objects = at(parseStrictJson(read('objects')), 'rows') as JsonValue[];
      assert.deepEqual(cellsOf(objects), expected);
      assert.deepEqual(
        namesOf(objects),
        rows.map(() => names),
      );
      for (const kind of ['lines', 'lines of objects'] as const) {
        const lines = linesOf(read(kind));
        assert.deepEqual(cellsOf(lines.slice(1, -1)), expected);
        assert.equal(shown(at(lines.at(-1) ?? null, 'end', 'row_count')), String(rows.length));
      }
      const [header, ...records] = parseStrictCsv(read('csv'));
      assert.deepEqual(header, names);
      assert.deepEqual(cellsOf(records), expected);
    }),
    { numRuns: cases(60) },
  );
});

const ordinary = [{ type: wire.long, charset: binary }, {}];
const rowsOf = (count: number) => Array.from({ length: count }, (_, row) => [String(row), 'text']);
const packets = (count: number) => rowsOf(count).map(rowPacket);

test('takes all rows of a chunk in one call, numbers beyond 255 included', () => {
  const chunk = toBytes(packets(700));
  const { rows, bytes, nextSequence, body } = takeAtOnce(ordinary, chunk);
  assert.equal(rows, 700);
  assert.equal(bytes, chunk.length);
  assert.equal(nextSequence, 701 & 255);
  const expected = rowsOf(700).map(([number, text]) => `[${number},"${text}"]`);
  assert.equal(body.toString(), expected.join(','));
});

test('stops before the first bytes that are not a whole row of the result, and takes the rows before them', () => {
  const good = packets(3);
  const cases: Record<string, Buffer> = {
    'the end of rows': eofPacket(),
    'an error': errorPacket(1242, 'no'),
    'an empty packet': Buffer.alloc(0),
    'a cell missing': rowPacket(['1']),
    'a cell too many': rowPacket(['1', 'a', 'b']),
    'a NULL too many': rowPacket(['1', 'a', null]),
    'a cell longer than its row': Buffer.from('\x011\x02a', 'latin1'),
    'a length that is cut': Buffer.from('\x011\xfc', 'latin1'),
    'a length of 2^24-1': Buffer.from('\x011\xfd\xff\xff\xff', 'latin1'),
    'a length of 2^64-1': Buffer.from('\x011\xfe\xff\xff\xff\xff\xff\xff\xff\xff', 'latin1'),
    'a first byte that is no length': Buffer.from('\x011\xff', 'latin1'),
    'a number longer than any': rowPacket(['1'.repeat(1025), 'a']),
    'text that is no UTF-8': rowPacket(['1', Buffer.from([0xff])]),
    'a row that is longer than the room': rowPacket(['1', 'x'.repeat(90_000)]),
  };
  for (const [what, packet] of Object.entries(cases)) {
    const chunk = toBytes([...good, packet, ...good]);
    const { rows, bytes, body } = takeAtOnce(ordinary, chunk);
    assert.equal(rows, 3, what);
    assert.equal(bytes, toBytes(good).length, what);
    assert.equal(body.toString(), '[0,"text"],[1,"text"],[2,"text"]', what);
  }
  const cut = toBytes(good).subarray(0, -1);
  assert.equal(takeAtOnce(ordinary, cut).rows, 2);
  assert.equal(takeAtOnce(ordinary, toBytes(good), { sequence: 2 }).rows, 0);
  assert.equal(takeAtOnce([{ charset: latin1 }, {}], toBytes(good)).rows, 0);
});

test('writes lines, and records of CSV, at once as well', () => {
  const chunk = toBytes(
    [
      ['1', 'plain'],
      ['007', 'with "quotes", commas'],
      [null, ''],
      ['4', 'over\r\ntwo lines, more than one block of sixteen bytes long "'],
      ['5', null],
    ].map(rowPacket),
  );
  const csv = takeAtOnce(ordinary, chunk, { framing: 'csv' });
  assert.equal(csv.rows, 5);
  assert.deepEqual(csv.body.toString().split('\r\n'), [
    '1,plain',
    '7,"with ""quotes"", commas"',
    ',""',
    '4,"over',
    'two lines, more than one block of sixteen bytes long """',
    '5,',
    '',
  ]);
  const lines = takeAtOnce(ordinary, toBytes(packets(2)), { framing: 'lines' });
  assert.equal(lines.body.toString(), '[0,"text"]\n[1,"text"]\n');
});

test('writes objects at once as well, whatever the names of their members', () => {
  const names = ['n', 'a "name" of more than one block of sixteen bytes, and of é'];
  const chunk = toBytes(
    [
      ['1', 'text'],
      [null, null],
      ['3', '"'],
    ].map(rowPacket),
  );
  const { rows, body } = takeAtOnce(ordinary, chunk, { names });
  assert.equal(rows, 3);
  const cells = [
    [1, 'text'],
    [null, null],
    [3, '"'],
  ];
  const objects = cells.map((row) => Object.fromEntries(row.map((cell, at) => [names[at], cell])));
  assert.equal(body.toString(), objects.map((object) => JSON.stringify(object)).join(','));
  const lines = takeAtOnce(ordinary, chunk, { names, framing: 'lines' });
  assert.equal(lines.body.toString(), objects.map((one) => `${JSON.stringify(one)}\n`).join(''));
});

test('leaves objects to be written alone if their names are too long, and stops where their names do not fit', () => {
  const chunk = toBytes(packets(9));
  assert.equal(takeAtOnce(ordinary, chunk, { names: ['n', 'x'.repeat(70_000)] }).rows, 0);
  // Each row needs a fifth of the writer's buffer.
  const { rows, body } = takeAtOnce(ordinary, chunk, { names: ['n', 'x'.repeat(30_000)] });
  assert.ok(rows > 0 && rows < 9, `${rows}`);
  assert.equal((JSON.parse(`[${body}]`) as unknown[]).length, rows);
});

test('stops at the given place', () => {
  const chunk = toBytes(packets(9));
  assert.equal(takeAtOnce(ordinary, chunk, { maxRows: 4 }).rows, 4);
  assert.equal(takeAtOnce(ordinary, chunk, { maxRows: 0 }).rows, 0);
  // A row is ten bytes long, eleven with its comma.
  for (const [stopLength, rows] of [
    [0, 1],
    [9, 1],
    [10, 2],
    [20, 2],
    [21, 3],
    [-1, 0],
  ] as const) {
    assert.equal(takeAtOnce(ordinary, chunk, { stopLength }).rows, rows, `${stopLength}`);
  }
  const { body } = takeAtOnce(ordinary, chunk, { maxRows: 1, needsComma: true });
  assert.equal(body.toString(), ',[0,"text"]');
});

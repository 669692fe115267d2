// Cells: each kind is written the same in short and long rows, and no row is cut.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foreignCharset } from '../../../../src/shared/mysql/charsets.ts';
import { typeName } from '../../../../src/shared/mysql/column-types.ts';
import type { Column } from '../../../../src/shared/mysql/packets.ts';
import { cellKind, cellKinds } from '../../../../src/worker/encode/columns.ts';
import { dbCells } from '../../../../src/worker/encode/formats/db.ts';
import { planRow, writeRow } from '../../../../src/worker/encode/rows.ts';
import { resultSet, rowPacket, toBytes } from '../../../support/database/mysql-answer.ts';
import { at, JsonNumber, type JsonValue, parseStrictJson } from '../../../support/strict-json.ts';
import { collect, createWriter, transcribe, ways } from '../../support/transcript.ts';

const nothing = Buffer.alloc(0);

const column = (type: number, charset: number): Column => ({
  name: Buffer.from('c'),
  origin: { database: nothing, table: nothing, originalTable: nothing, originalName: nothing },
  type,
  charset,
  flags: 0,
  length: 0,
  decimals: 0,
  extendedType: null,
  resultCharset: null,
});
const [latin1, binary, utf8mb4] = [8, 63, 45];
const types = {
  tiny: 1,
  double: 5,
  timestamp: 7,
  longlong: 8,
  year: 13,
  bit: 16,
  json: 245,
  decimal: 246,
  blob: 252,
  varString: 253,
  geometry: 255,
};

function write(
  columns: readonly Column[],
  cells: readonly (Buffer | string | null)[],
  asStrings = false,
): JsonValue[] {
  const transport = collect();
  const out = createWriter(transport);
  const packet = rowPacket(cells);
  // The row is inside of a larger chunk.
  const chunk = Buffer.concat([Buffer.from('before'), packet, Buffer.from([0xfb, 0, 1])]);
  writeRow(out, planRow(columns, dbCells(asStrings)), chunk, 6, 6 + packet.length);
  out.end();
  const row = parseStrictJson(transport.body()) as JsonValue[];
  checkAllWays(columns, cells, asStrings, row);
  return row;
}

/** More bytes than the connection needs before it takes many rows at once. */
const minBytesAtOnce = 600;

/** Whichever code writes it, the row says the same; several of it, so that they are taken at once. */
function checkAllWays(
  columns: readonly Column[],
  cells: readonly (Buffer | string | null)[],
  exactAsStrings: boolean,
  row: readonly JsonValue[],
): void {
  const count = 1 + Math.ceil(minBytesAtOnce / rowPacket(cells).length);
  const rows = Array.from({ length: count }, () => cells);
  const wishes = columns.map(({ type, charset }) => ({ type, charset }));
  const answer = [toBytes(resultSet(wishes, rows))];
  for (const [name, way] of Object.entries(ways)) {
    const { document } = transcribe(answer, { way, exactAsStrings });
    const written = at(parseStrictJson(document as Buffer), 'RESULT', 'ROWS');
    assert.deepEqual(
      written,
      rows.map(() => row),
      name,
    );
  }
}

/** Digits and value of each cell: numbers as objects, so that a string is never taken for one. */
const cases: readonly (readonly [
  type: number,
  charset: number,
  cell: Buffer | string | null,
  is: JsonValue,
])[] = [
  [types.tiny, binary, '-128', new JsonNumber('-128')],
  [types.longlong, binary, '18446744073709551615', new JsonNumber('18446744073709551615')],
  [types.longlong, binary, '00000000000000000042', new JsonNumber('42')],
  [types.longlong, binary, '000', new JsonNumber('0')],
  [types.decimal, binary, '000.10', new JsonNumber('0.10')],
  [types.decimal, binary, '-0.00', new JsonNumber('-0.00')],
  [types.double, binary, '1.7976931348623157e308', new JsonNumber('1.7976931348623157e308')],
  [types.double, binary, '00001e-5', new JsonNumber('1e-5')],
  [types.double, binary, '-0', new JsonNumber('-0')],
  [types.double, binary, 'inf', 'inf'],
  [types.double, binary, '-inf', '-inf'],
  [types.double, binary, 'nan', 'nan'],
  [types.double, binary, '', ''],
  [types.double, binary, '-', '-'],
  [types.double, binary, '-0.5e+300', new JsonNumber('-0.5e+300')],
  [types.decimal, binary, `-1${'0'.repeat(64)}`, new JsonNumber(`-1${'0'.repeat(64)}`)],
  ...['1],"X":"inj', '1,2', '1 ', ' 1', '+1', '.5', '1.', '1..2', '1.2.3', '-.5', '--1', '1-'].map(
    (text) => [types.longlong, binary, text, text] as const,
  ),
  ...['0x1f', '1e', '1e+', 'e5', '1e5.5', '-007', '٣', 'true', '1\n', '12345678901234567890,1'].map(
    (text) => [types.double, binary, text, text] as const,
  ),
  [types.decimal, binary, Buffer.from('31ff', 'hex'), '1\ufffd'],
  [types.year, binary, '0000', '0000'],
  [types.timestamp, binary, '0000-00-00 00:00:00', '0000-00-00 00:00:00'],
  [types.bit, binary, Buffer.from([1, 0]), '256'],
  [types.bit, binary, Buffer.alloc(8, 255), '18446744073709551615'],
  [types.bit, binary, Buffer.alloc(9, 255), '////////////'],
  [types.json, binary, '{"a":1}', '{"a":1}'],
  [types.blob, binary, Buffer.from([0, 255]), 'AP8='],
  [types.blob, utf8mb4, 'é"', 'é"'],
  [types.geometry, binary, Buffer.from([1, 2, 3]), 'AQID'],
  [types.varString, latin1, Buffer.from([0xe9, 0x80]), 'é€'],
  [types.varString, utf8mb4, '', ''],
  [types.varString, utf8mb4, null, null],
  [types.longlong, binary, null, null],
];

test('writes each kind of cell, alone and together', () => {
  for (const [type, charset, cell, is] of cases) {
    assert.deepEqual(write([column(type, charset)], [cell]), [is]);
  }
  const columns = cases.map(([type, charset]) => column(type, charset));
  assert.deepEqual(
    write(
      columns,
      cases.map(([, , cell]) => cell),
    ),
    cases.map(([, , , is]) => is),
  );
});

test('writes them the same in a row that does not fit into the room left', () => {
  const long = 'x'.repeat(70_000);
  const columns = cases.map(([type, charset]) => column(type, charset));
  const row = write(
    [...columns, column(types.blob, utf8mb4)],
    [...cases.map(([, , cell]) => cell), long],
  );
  assert.deepEqual(row, [...cases.map(([, , , is]) => is), long]);
});

test('writes exact numbers, and only these, as strings by option', () => {
  const numbers = [
    column(types.longlong, binary),
    column(types.decimal, binary),
    column(types.double, binary),
  ];
  for (const extra of ['', 'x'.repeat(20_000)]) {
    const row = write(
      [...numbers, column(types.varString, utf8mb4)],
      ['007', '00.10', '0.5', extra],
      true,
    );
    assert.deepEqual(row, ['7', '0.10', new JsonNumber('0.5'), extra]);
  }
});

test('treats a number that is longer than any type allows as text', () => {
  const digits = '1'.repeat(30_000);
  assert.deepEqual(write([column(types.longlong, binary)], [digits]), [digits]);
});

test('writes a thousand columns', () => {
  const columns = Array.from({ length: 1000 }, () => column(types.longlong, binary));
  const row = write(
    columns,
    columns.map((_, index) => String(index)),
  );
  assert.equal(row.length, 1000);
  assert.deepEqual(at(row, 999), new JsonNumber('999'));
});

test("names types as the C API does, and knows text from bytes by the column's character set", () => {
  assert.equal(typeName(3), 'MYSQL_TYPE_LONG');
  assert.equal(typeName(242), 'MYSQL_TYPE_VECTOR');
  assert.equal(typeName(99), 'MYSQL_TYPE_UNKNOWN');
  assert.equal(cellKind(column(types.varString, binary), dbCells(false)), cellKinds.binary);
  assert.equal(cellKind(column(types.varString, utf8mb4), dbCells(false)), cellKinds.text);
  assert.deepEqual(
    [...planRow([column(types.varString, latin1)], dbCells(false)).kinds],
    [cellKinds.foreign],
  );
  assert.equal(cellKind(column(242, binary), dbCells(false)), cellKinds.binary);
});

test('does not convert UTF-8 of any collation', () => {
  for (const charset of [33, 45, 46, 192, 224, 255, 305, 83, 76, 11, 2304, 2048]) {
    assert.equal(foreignCharset(charset), null, `${charset}`);
  }
});

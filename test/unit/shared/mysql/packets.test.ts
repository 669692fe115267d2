// Packets: exact values, and an error if one is too short.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  parseColumn,
  parseColumnCount,
  parseEofStatus,
  parseError,
  parseOk,
} from '../../../../src/shared/mysql/packets.ts';
import {
  columnPacket,
  eofPacket,
  errorPacket,
  lengthEncoded,
  okPacket,
} from '../../../support/database/mysql-answer.ts';

type Parser = (bytes: Buffer, start: number, end: number) => unknown;

/** Every packet cut short, inside of a chunk that goes on, is an error and not a guess. */
function refusesCut(parse: Parser, packet: Buffer, needed: number): void {
  const chunk = Buffer.concat([packet, Buffer.alloc(64)]);
  for (let end = 0; end < needed; end += 1) {
    assert.throws(() => parse(chunk, 0, end), RangeError, `cut at ${end}`);
  }
  assert.doesNotThrow(() => parse(chunk, 0, packet.length));
}

test('reads counts of an OK exactly, up to 2^64-1', () => {
  for (const [bytes, count] of [
    ['fa', 250],
    ['fcfb00', 251],
    ['fcffff', 65535],
    ['fd000001', 65536],
    ['fdffffff', 16777215],
    ['fe00000001000000 00', 16777216],
    ['feffffffffffff1f00', Number.MAX_SAFE_INTEGER],
    ['fe000000000000 2000', 2n ** 53n],
    ['feffffffffffffffff', 2n ** 64n - 1n],
  ] as const) {
    const encoded = Buffer.from(bytes.replaceAll(' ', ''), 'hex');
    const packet = Buffer.concat([
      Buffer.from([0]),
      encoded,
      encoded,
      Buffer.from([2, 0x40, 7, 0]),
    ]);
    assert.deepEqual(parseOk(packet, 0, packet.length), {
      affectedRows: count,
      insertId: count,
      status: 0x4002,
      warnings: 7,
      info: '',
    });
    refusesCut(parseOk, packet, packet.length);
  }
});

test('reads the message of an OK, and none if its length is wrong', () => {
  const infoOf = (tail: string) => {
    const packet = Buffer.from(`00010002000000${tail}`, 'hex');
    return parseOk(packet, 0, packet.length).info;
  };
  const text = Buffer.from('Rows matched: 1').toString('hex');
  assert.equal(infoOf(`0f${text}`), 'Rows matched: 1');
  assert.equal(infoOf(`0f${text}0400`), 'Rows matched: 1');
  for (const tail of ['', '00', `10${text}`, 'ff']) assert.equal(infoOf(tail), '', tail);
});

test('reads a column whatever surrounds its name', () => {
  for (const extended of [false, true]) {
    const wish = { name: '__proto__ é', type: 253, charset: 0x0901, extended };
    const packet = columnPacket(wish);
    const column = parseColumn(packet, 0, packet.length, extended);
    assert.equal(column.name.toString(), wish.name);
    assert.deepEqual([column.type, column.charset], [253, 0x0901]);
    refusesCut(
      (bytes, start, end) => parseColumn(bytes, start, end, extended),
      packet,
      packet.length - 2,
    );
  }
});

test("reads the type of a column, MariaDB's own types included", () => {
  const wish = { type: 246, charset: 63, flags: 0x9031, length: 4294967295, decimals: 30 };
  for (const [extended, extendedType] of [
    [false, null],
    [[], null],
    [[[0, 'uuid']], 'uuid'],
    [[[1, 'json']], 'json'],
    [
      [
        [7, 'later'],
        [0, 'point'],
        [1, 'json'],
        [9, ''],
      ],
      'point',
    ],
  ] as const) {
    const packet = columnPacket({ ...wish, extended });
    const { type, charset, flags, length, decimals, ...rest } = parseColumn(
      packet,
      0,
      packet.length,
      extended !== false,
    );
    assert.deepEqual({ type, charset, flags, length, decimals }, wish);
    assert.equal(rest.extendedType, extendedType);
  }
});

test('keeps the name when the chunk is overwritten', () => {
  const packet = columnPacket({ name: 'kept' });
  const { name } = parseColumn(packet, 0, packet.length, false);
  packet.fill(0);
  assert.equal(name.toString(), 'kept');
});

test('reads errors with SQL state and without', () => {
  const packet = errorPacket(1146, "Table 'é' doesn't exist");
  assert.deepEqual(parseError(packet, 0, packet.length), {
    errno: 1146,
    sqlState: '42000',
    message: "Table 'é' doesn't exist",
  });
  const early = Buffer.from('\xff\x10\x04Too many connections', 'latin1');
  assert.deepEqual(parseError(early, 0, early.length), {
    errno: 1040,
    sqlState: 'HY000',
    message: 'Too many connections',
  });
  refusesCut(parseError, packet, 3);
});

test('reads the status of an EOF, and rejects other packets', () => {
  const packet = eofPacket(0x000a);
  assert.equal(parseEofStatus(packet, 0, packet.length), 10);
  refusesCut(parseEofStatus, packet, packet.length);
  const ok = okPacket();
  assert.throws(() => parseEofStatus(ok, 0, ok.length), RangeError);
});

test('reads the number of columns', () => {
  for (const count of [1, 250, 251, 4096, 65535]) {
    const packet = lengthEncoded(count);
    assert.equal(parseColumnCount(packet, 0, packet.length), count);
    refusesCut(parseColumnCount, packet, packet.length);
  }
});

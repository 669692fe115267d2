// The value of a BIT in each form that servers send.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bitBytes, readBits } from '../../../../src/shared/mysql/doubtful-bits.ts';

const widths = Array.from({ length: 64 }, (_, index) => index + 1);
const most = (bits: number) => (1n << BigInt(bits)) - 1n;
const values = (bits: number) =>
  [0n, 1n, 49n, 0x3130n, 0x80ffn, most(bits) >> 1n, most(bits)].filter((v) => v <= most(bits));
/** Digits that could as well be the bytes. */
const isBoth = (value: bigint, bits: number) => {
  const length = Math.ceil(bits / 8);
  return String(value).length === length && [0, 6, 7].includes(bits % 8);
};
const isDigits = (bytes: Buffer) => /^(?:0|[1-9]\d*)$/.test(bytes.toString('latin1'));

test('digits are read as a number for every width', () => {
  for (const bits of widths) {
    for (const value of values(bits)) {
      const cell = Buffer.from(String(value));
      assert.equal(readBits(cell, { bits, rather: 'text' }), value);
      if (isBoth(value, bits)) continue;
      assert.equal(readBits(cell, { bits, rather: 'bytes' }), value, `BIT(${bits}) ${value}`);
    }
  }
});

test('bytes are read as bytes for every width, also as the characters that MySQL makes of them', () => {
  for (const bits of widths) {
    for (const value of values(bits)) {
      const cell = bitBytes(value, bits);
      assert.equal(cell.length, Math.ceil(bits / 8));
      assert.equal(readBits(cell, { bits, rather: 'bytes' }), value);
      if (!isDigits(cell)) assert.equal(readBits(cell, { bits, rather: 'text' }), value);
      // latin1 and cp1252 read all of these bytes alike, except 0x80.
      const characters = Buffer.from(cell.toString('latin1').replaceAll('\x80', '€'));
      assert.equal(readBits(characters, { bits, rather: 'bytes' }), value);
    }
  }
});

test('a cell that no BIT of the width can have is not a value', () => {
  for (const [cell, bits] of [
    ['', 8],
    ['2', 1],
    ['007', 3],
    ['256', 8],
    ['-1', 64],
    ['18446744073709551616', 64],
    ['\u20ac\u20ac\u20ac', 16],
    ['Ā', 8],
  ] as const) {
    assert.equal(readBits(Buffer.from(cell), { bits, rather: 'text' }), null, `${cell} ${bits}`);
  }
});

// Every character set that MySQL can name is known, and has a decoder that makes text of any bytes. test/behaviour/sql/charsets.test.ts
// compares the characters with a server's.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import iconv from 'iconv-lite';
import { multiByteSets, upperHalves } from '../../../../src/shared/mysql/charset-tables.ts';
import {
  decode,
  foreignCharset,
  foreignName,
  isBinaryCharset,
  isWide,
} from '../../../../src/shared/mysql/charsets.ts';
import { cases, fc } from '../../../support/property.ts';

test('every character set number leads to UTF-8 or to a name that is known', () => {
  for (let charset = 0; charset < 4096; charset += 1) {
    const name = foreignCharset(charset);
    assert.ok(name === null || foreignName(name) === name, `${charset}: ${name}`);
  }
});

test('the character sets of the gateway are UTF-8 already, and binary is not text', () => {
  for (const charset of [45, 33, 255, 224, 11]) assert.equal(foreignCharset(charset), null);
  for (const name of ['utf8mb4', 'utf8mb3', 'utf8', 'ascii', 'binary', '', '__proto__', 'nope']) {
    assert.equal(foreignName(name), null, name);
  }
  assert.equal(foreignCharset(8), 'latin1');
  assert.equal(isBinaryCharset(63), true);
  assert.equal(isBinaryCharset(45), false);
  assert.equal(isWide('utf16le'), true);
  assert.equal(isWide('latin1'), false);
});

test('knows the numbers that only MariaDB has', () => {
  for (const [charset, name] of [
    [1032, 'latin1'],
    [1088, 'armscii8'],
    [1152, 'ucs2'],
    [2561, 'ucs2'],
    [2817, 'utf16'],
    [3073, 'utf32'],
    [1057, null],
    [2049, null],
  ] as const) {
    assert.equal(foreignCharset(charset), name, `${charset}`);
  }
});

test('each table holds 128 characters, or names an encoding', () => {
  for (const [name, upper] of Object.entries(upperHalves)) assert.equal(upper.length, 128, name);
  for (const { encoding } of Object.values(multiByteSets)) {
    assert.ok(iconv.encodingExists(encoding), encoding);
  }
});

const names = [
  ...Object.keys(upperHalves),
  ...Object.keys(multiByteSets),
  ...['swe7', 'ucs2', 'utf16', 'utf16le', 'utf32', 'utf8mb4'],
];

test('makes well-formed text of any bytes, and loses no ASCII', () => {
  const bytes = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(0x8f, 0x30, 0xd8, 0xed)),
  );
  fc.assert(
    fc.property(fc.constantFrom(...names), bytes, (name, array) => {
      const text = decode(Buffer.from(array), name);
      assert.equal(Buffer.from(text).toString(), text, name);
    }),
    { numRuns: cases(1000) },
  );
  const ascii = 'abc XYZ 0123456789 "{}"'.replaceAll(/[{}]/g, '');
  for (const name of names) {
    const unit = name === 'utf32' ? 4 : isWide(name) ? 2 : 1;
    const wide = Buffer.alloc(ascii.length * unit);
    for (const [index, letter] of [...ascii].entries()) {
      wide[index * unit + (name === 'utf16le' ? 0 : unit - 1)] = letter.charCodeAt(0);
    }
    assert.equal(decode(wide, name), ascii, name);
  }
});

test('keeps a byte order mark, which is a character of the text', () => {
  assert.equal(decode(Buffer.from('feff0061', 'hex'), 'utf16'), '\ufeffa');
  assert.equal(decode(Buffer.from('fffe6100', 'hex'), 'utf16le'), '\ufeffa');
  assert.equal(decode(Buffer.from('efbbbf61', 'hex'), 'utf8mb4'), '\ufeffa');
});

test('half a unit or half a pair becomes U+FFFD', () => {
  assert.equal(decode(Buffer.from('0061d8', 'hex'), 'utf16'), 'a\ufffd');
  assert.equal(decode(Buffer.from('0061d8000062', 'hex'), 'ucs2'), 'a\ufffdb');
  assert.equal(decode(Buffer.from('0000d80000110000ff', 'hex'), 'utf32'), '\ufffd\ufffd\ufffd');
});

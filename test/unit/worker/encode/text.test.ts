// The promise of text: any bytes of UTF-8 become a JSON string with the same characters, in the room that was reserved.
import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { test } from 'node:test';
import {
  writeAscii,
  writeBase64,
  writeBytes,
  writeText,
} from '../../../../src/worker/encode/text.ts';
import type { ReplyWriter } from '../../../../src/worker/encode/writer.ts';
import { rowPacket, toBytes } from '../../../support/database/mysql-answer.ts';
import { anyCharacter, cases, fc } from '../../../support/property.ts';
import { parseStrictJson } from '../../../support/strict-json.ts';
import { takeAtOnce } from '../../support/rows-at-once.ts';
import { collect, createWriter } from '../../support/transcript.ts';

/** A little less than a writer's buffer. */
const surelyTaken = 80_000;

function written(write: (out: ReplyWriter) => void, holdBytes = 65536): Buffer {
  const transport = collect();
  const out = createWriter(transport, holdBytes);
  write(out);
  out.end();
  return transport.body();
}

/**
 * Writes it alone, and together with others if it is UTF-8 and short enough: both must be the same. Bytes that are not UTF-8 are left to be
 * written alone.
 */
function asText(bytes: Buffer, holdBytes?: number): Buffer {
  const alone = written((out) => writeText(out, bytes, 0, bytes.length), holdBytes);
  const row = rowPacket([bytes, 'next']);
  const { rows, body } = takeAtOnce([{}, {}], toBytes([row]));
  if (!isUtf8(bytes)) assert.equal(rows, 0);
  else if (alone.length < surelyTaken) assert.equal(rows, 1, `${bytes.length} bytes`);
  if (rows > 0) assert.ok(body.equals(Buffer.from(`[${alone},"next"]`)), `${body}`);
  return alone;
}

test('writes every character of Unicode, alone and among others', () => {
  for (let from = 0; from < 0x110000; from += 1024) {
    if (from >= 0xd800 && from < 0xe000) continue;
    const text = String.fromCodePoint(...Array.from({ length: 1024 }, (_, index) => from + index));
    assert.equal(parseStrictJson(asText(Buffer.from(text))), text, from.toString(16));
    if (from >= 0x10000) continue;
    for (let at = 0; at < text.length; at += 64) {
      // Far apart, so that each is alone in a block of bytes.
      const padded = `${'p'.repeat(80)}${[...text.slice(at, at + 64)].join('q'.repeat(80))}`;
      assert.equal(parseStrictJson(asText(Buffer.from(padded))), padded);
    }
  }
});

test('escapes what RFC 8259 requires, and nothing else', () => {
  const ascii = Buffer.from(Array.from({ length: 128 }, (_, code) => code));
  const expected = JSON.stringify(ascii.toString('latin1'));
  assert.equal(asText(ascii).toString(), expected);
  const long = Buffer.concat([ascii, Buffer.alloc(100, 'x'), ascii]);
  assert.equal(asText(long).toString(), JSON.stringify(long.toString('latin1')));
});

test('writes any text of any length, for any size of the buffer', () => {
  const part = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 200 }),
    fc.integer({ min: 0, max: 9000 }).map((count) => 'a'.repeat(count)),
    fc.integer({ min: 0, max: 9000 }).map((count) => '\u0001'.repeat(count)),
    fc.integer({ min: 0, max: 3000 }).map((count) => '誠"'.repeat(count)),
  );
  const holds = fc.constantFrom(1, 1024, 65536, 200_000);
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), holds, (parts, hold) => {
      const text = parts.join('');
      assert.equal(parseStrictJson(asText(Buffer.from(text), hold)), text);
    }),
    { numRuns: cases(60) },
  );
});

/** The text that a browser makes of the bytes. */
const whatwg = new TextDecoder('utf-8', { ignoreBOM: true });
/** Beginnings of characters, beginnings of invalid ones, and single bytes. */
const pieces = [
  ...['eda080', 'edbfbf', 'ed9fbf', 'ee8080', 'c0af', 'c1bf', 'c280', 'dfbf', 'e09fbf', 'e0a080'],
  ...['f08fbfbf', 'f0908080', 'f48fbfbf', 'f4908080', 'f5808080', 'e8aa', 'f09f98', 'f09f', 'c3'],
  ...['80', 'bf', 'ff', 'fe', '61', '22', '0a', '00', 'efbbbf', 'e8aaa0', 'f09f9880', 'c3a9'],
].map((hex) => Buffer.from(hex, 'hex'));

test('puts U+FFFD where the bytes are no UTF-8, as often as browsers do', () => {
  for (const one of pieces) {
    for (const two of [Buffer.alloc(0), ...pieces]) {
      for (const around of [0, 1, 13, 14, 15, 16, 61, 100]) {
        const pad = Buffer.alloc(around, 'x');
        const bytes = Buffer.concat([pad, one, two, pad]);
        assert.equal(parseStrictJson(asText(bytes)), whatwg.decode(bytes), bytes.toString('hex'));
      }
    }
  }
});

test('finds them wherever a long text is cut', () => {
  const bytes = fc.array(
    fc.oneof(
      fc.constantFrom(...pieces),
      fc.integer({ min: 1, max: 2060 }).map((n) => Buffer.alloc(n, 'a"')),
    ),
    { minLength: 1, maxLength: 12 },
  );
  fc.assert(
    fc.property(bytes, fc.constantFrom(1, 65536), (parts, hold) => {
      const joined = Buffer.concat(parts);
      assert.equal(parseStrictJson(asText(joined, hold)), whatwg.decode(joined));
    }),
    { numRuns: cases(100) },
  );
  for (const piece of pieces) {
    for (let shift = 2040; shift < 2052; shift += 1) {
      const joined = Buffer.concat([Buffer.alloc(shift, 'x'), piece, piece, Buffer.alloc(4, 'é')]);
      assert.equal(parseStrictJson(asText(joined)), whatwg.decode(joined));
    }
  }
});

test('distinguishes every pair and triple of bytes that is UTF-8 from those that are not', () => {
  const [leads, others] = [
    [
      0x61, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5,
      0xff,
    ],
    256,
  ];
  const cells: Buffer[] = [];
  for (const lead of leads) {
    for (let second = 0; second < others; second += 1) {
      for (const rest of [
        [],
        [0x7f],
        [0x80],
        [0xbf],
        [0xc0],
        [0x80, 0x80],
        [0xbf, 0xbf],
        [0x80, 0x61],
      ]) {
        cells.push(Buffer.from([lead, second, ...rest]));
      }
    }
  }
  for (const cell of cells) {
    const { rows, body } = takeAtOnce([{}], toBytes([rowPacket([cell])]));
    assert.equal(rows === 1, isUtf8(cell), cell.toString('hex'));
    if (rows === 1) assert.ok(body.equals(Buffer.from(`[${JSON.stringify(cell.toString())}]`)));
    const alone = written((out) => writeText(out, cell, 0, cell.length));
    assert.equal(parseStrictJson(alone), whatwg.decode(cell), cell.toString('hex'));
  }
});

test('writes base64 of any length, whole or in pieces', () => {
  for (const length of [0, 1, 2, 3, 6143, 6144, 6145, 6146, 12288, 100_000]) {
    const bytes = Buffer.from(Array.from({ length }, (_, index) => (index * 7) & 255));
    for (const hold of [1, 65536]) {
      const document = written((out) => writeBase64(out, bytes, 0, length), hold);
      assert.equal(document.toString(), `"${bytes.toString('base64')}"`);
    }
  }
});

test('writes a part of a buffer only', () => {
  const source = Buffer.from('before"inside"after');
  assert.equal(
    written((out) => writeText(out, source, 6, 14)).toString(),
    JSON.stringify('"inside"'),
  );
  assert.equal(
    written((out) => writeBase64(out, source, 7, 13)).toString(),
    `"${Buffer.from('inside').toString('base64')}"`,
  );
});

test('writes names and ASCII unchanged', () => {
  assert.equal(
    written((out) => writeBytes(out, Buffer.from('é'.repeat(9000)))).toString(),
    'é'.repeat(9000),
  );
  assert.equal(written((out) => writeAscii(out, '{"a":1}')).toString(), '{"a":1}');
});

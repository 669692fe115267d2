// MySQL's character sets: their numbers and names, and their text as strings, converted as the server does it. Not hot: servers send UTF-8
// unless a request changes its session's character set.

import { isAscii } from 'node:buffer';
import iconv from 'iconv-lite';
import { type MultiByteSet, multiByteSets, swe7Letters, upperHalves } from './charset-tables.ts';

const binaryCharset = 63;

/** The numbers of the collations of each character set that is neither UTF-8 nor ASCII nor binary. */
const collations: Readonly<Record<string, readonly number[]>> = {
  armscii8: [32, 64],
  big5: [1, 84],
  cp1250: [26, 34, 44, 66, 99],
  cp1251: [14, 23, 50, 51, 52],
  cp1256: [57, 67],
  cp1257: [29, 58, 59],
  cp850: [4, 80],
  cp852: [40, 81],
  cp866: [36, 68],
  cp932: [95, 96],
  dec8: [3, 69],
  eucjpms: [97, 98],
  euckr: [19, 85],
  gb18030: [248, 249, 250],
  gb2312: [24, 86],
  gbk: [28, 87],
  geostd8: [92, 93],
  greek: [25, 70],
  hebrew: [16, 71],
  hp8: [6, 72],
  keybcs2: [37, 73],
  koi8r: [7, 74],
  koi8u: [22, 75],
  latin1: [5, 8, 15, 31, 47, 48, 49, 94],
  latin2: [2, 9, 21, 27, 77],
  latin5: [30, 78],
  latin7: [20, 41, 42, 79],
  macce: [38, 43],
  macroman: [39, 53],
  sjis: [13, 88],
  swe7: [10, 82],
  tis620: [18, 89],
  ucs2: [35, 90, ...span(128, 159), 640, 641, 642],
  ujis: [12, 91],
  utf16: [54, 55, ...span(101, 124), 672, 673, 674],
  utf16le: [56, 62],
  utf32: [60, 61, ...span(160, 183), 736, 737, 738],
};
const byNumber = new Map(
  Object.entries(collations).flatMap(([name, numbers]) => numbers.map((id) => [id, name] as const)),
);
/** MariaDB adds this to the number of a collation for the one that does not pad. */
const noPad = 1024;
/** MariaDB numbers its UCA 14.0.0 collations from here on: the high byte is the character set. */
const firstUca14 = 2048;
const wideUca14: Readonly<Record<number, string>> = { 10: 'ucs2', 11: 'utf16', 12: 'utf32' };
const wide = new Set(['ucs2', 'utf16', 'utf16le', 'utf32']);

/** Whether a column of this character set holds bytes, not text. */
export function isBinaryCharset(charset: number): boolean {
  return charset === binaryCharset;
}

/** Whether an ASCII character has two or four bytes in it. */
export function isWide(name: string): boolean {
  return wide.has(name);
}

/**
 * The character set of a column's text, by MySQL's name; null: its bytes are UTF-8 already (ASCII included), as in every session whose
 * character set the request did not change.
 */
export function foreignCharset(charset: number): string | null {
  if (charset >= firstUca14) return wideUca14[charset >> 8] ?? null;
  return byNumber.get(charset >= noPad ? charset - noPad : charset) ?? null;
}

/** The same for a value of character_set_results: UTF-8, ASCII, binary and NULL (an empty value) are null. */
export function foreignName(value: string): string | null {
  const isForeign =
    isWide(value) ||
    value === 'swe7' ||
    Object.hasOwn(upperHalves, value) ||
    Object.hasOwn(multiByteSets, value);
  return isForeign ? value : null;
}

function span(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

const noCharacter = '\ufffd';
const upperHalf = 0x80;
const maxCodePoint = 0x10ffff;

/**
 * Converts text; bytes that are not a character become U+FFFD, halves of surrogate pairs included.
 * @param charset MySQL's name; an unknown one is read as UTF-8
 */
export function decode(bytes: Buffer, charset: string): string {
  switch (charset) {
    case 'ucs2':
    case 'utf16':
      return decodeUtf16(toLittleEndian(bytes));
    case 'utf16le':
      return decodeUtf16(bytes);
    case 'utf32':
      return decodeUtf32(bytes);
    case 'swe7':
      return decodeSwe7(bytes);
    default:
  }
  const upper = upperHalves[charset];
  const multiByte = decoders[charset];
  if ((upper === undefined && multiByte === undefined) || isAscii(bytes)) return bytes.toString();
  if (upper !== undefined) return decodeSingleBytes(bytes, upper);
  return multiByte === undefined ? bytes.toString() : multiByte.decode(bytes);
}

function decodeSingleBytes(bytes: Buffer, upper: string): string {
  let text = '';
  for (const byte of bytes) {
    text += byte < upperHalf ? String.fromCharCode(byte) : upper.charAt(byte - upperHalf);
  }
  return text;
}

function decodeSwe7(bytes: Buffer): string {
  let text = '';
  for (const byte of bytes) {
    const ascii = String.fromCharCode(byte);
    text += byte < 0x7f ? (swe7Letters[ascii] ?? ascii) : noCharacter;
  }
  return text;
}

/** An odd last byte is not a character. */
function decodeUtf16(bytes: Buffer): string {
  const even = bytes.length & ~1;
  const text = wellFormed(bytes.toString('utf16le', 0, even));
  return even < bytes.length ? text + noCharacter : text;
}

/** Encoding as UTF-8 replaces lone surrogates by U+FFFD. */
function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

function toLittleEndian(bytes: Buffer): Buffer {
  const even = bytes.length & ~1;
  const swapped = Buffer.from(bytes);
  swapped.subarray(0, even).swap16();
  return swapped;
}

function decodeUtf32(bytes: Buffer): string {
  let text = '';
  let at = 0;
  for (; at + 4 <= bytes.length; at += 4) {
    const code = bytes.readUInt32BE(at);
    const isCharacter = code <= maxCodePoint && (code < 0xd800 || code > 0xdfff);
    text += isCharacter ? String.fromCodePoint(code) : noCharacter;
  }
  return at < bytes.length ? text + noCharacter : text;
}

/** A text has about ten thousand different characters. GB 18030 gives a client millions to ask for. */
const maxKnownCharacters = 65_536;

/** Decodes characters of one or several bytes. It keeps the answers of iconv-lite, up to a bound. */
class MultiByteDecoder {
  readonly #encoding: string;
  /** Length of a character by its first byte. */
  readonly #lengths = new Uint8Array(256).fill(1);
  /** Characters in which iconv-lite differs from the server, by their bytes as one number. */
  readonly #own = new Map<number, string>();
  /** Characters that were met lately, by the same numbers. */
  readonly #known = new Map<number, string>();

  constructor({ encoding, leads, runs }: MultiByteSet) {
    this.#encoding = encoding;
    for (const [from, to] of leads) this.#lengths.fill(2, from, to + 1);
    if (encoding === 'eucjp') this.#lengths[0x8f] = 3;
    for (const [first, characters] of runs) {
      for (const [index, character] of [...characters].entries()) {
        this.#own.set(first + index, character);
      }
    }
  }

  decode(bytes: Buffer): string {
    let text = '';
    for (let at = 0; at < bytes.length; ) {
      const length = this.#lengthAt(bytes, at);
      text +=
        length === 1 && (bytes[at] as number) < upperHalf
          ? String.fromCharCode(bytes[at] as number)
          : this.#character(bytes.subarray(at, at + length));
      at += length;
    }
    return text;
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const length = this.#lengths[bytes[at] as number] as number;
    if (this.#encoding !== 'gb18030' || length === 1) return length;
    const second = bytes[at + 1] ?? 0;
    return second >= 0x30 && second <= 0x39 ? 4 : 2;
  }

  #character(bytes: Buffer): string {
    const code = bytes.readUIntBE(0, bytes.length);
    const known = this.#known.get(code);
    if (known !== undefined) return known;
    const character = this.#own.get(code) ?? wellFormed(iconv.decode(bytes, this.#encoding));
    // Begins again: rare characters must not take the places of common ones for ever.
    if (this.#known.size === maxKnownCharacters) this.#known.clear();
    this.#known.set(code, character);
    return character;
  }
}

const decoders: Readonly<Record<string, MultiByteDecoder>> = Object.fromEntries(
  Object.entries(multiByteSets).map(([name, set]) => [name, new MultiByteDecoder(set)]),
);

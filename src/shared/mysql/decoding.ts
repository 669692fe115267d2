// Text of any of MySQL's character sets as a string, as the server itself would convert it.
// Must not know columns. Not hot: text comes as UTF-8 unless a request changes its session's character set.
import { isAscii } from 'node:buffer';
import iconv from 'iconv-lite';
import { type MultiByteSet, multiByteSets, swe7Letters, upperHalves } from './charset-tables.ts';

const noCharacter = '\ufffd';
const upperHalf = 0x80;
const mostCodePoint = 0x10ffff;

/**
 * Converts text; what is no character becomes U+FFFD, halves of surrogate pairs included.
 * @param charset by MySQL's name; one that is not known is read as UTF-8
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

/** A byte too many is no character. */
function decodeUtf16(bytes: Buffer): string {
  const even = bytes.length & ~1;
  const text = wellFormed(bytes.toString('utf16le', 0, even));
  return even < bytes.length ? text + noCharacter : text;
}

/** Going through UTF-8 puts U+FFFD in the place of lone surrogates. */
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
    const isCharacter = code <= mostCodePoint && (code < 0xd800 || code > 0xdfff);
    text += isCharacter ? String.fromCodePoint(code) : noCharacter;
  }
  return at < bytes.length ? text + noCharacter : text;
}

/** Characters of one or several bytes. What iconv-lite was asked once is remembered. */
class MultiByteDecoder {
  readonly #encoding: string;
  /** For each first byte how many bytes its characters have. */
  readonly #lengths = new Uint8Array(256).fill(1);
  /** By the number that a character's bytes make. There are some ten thousand of them. */
  readonly #known = new Map<number, string>();

  constructor({ encoding, leads, runs }: MultiByteSet) {
    this.#encoding = encoding;
    for (const [from, to] of leads) this.#lengths.fill(2, from, to + 1);
    if (encoding === 'eucjp') this.#lengths[0x8f] = 3;
    for (const [first, characters] of runs) {
      for (const [index, character] of [...characters].entries()) {
        this.#known.set(first + index, character);
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
    let character = this.#known.get(code);
    if (character === undefined) {
      character = wellFormed(iconv.decode(bytes, this.#encoding));
      this.#known.set(code, character);
    }
    return character;
  }
}

const decoders: Readonly<Record<string, MultiByteDecoder>> = Object.fromEntries(
  Object.entries(multiByteSets).map(([name, set]) => [name, new MultiByteDecoder(set)]),
);

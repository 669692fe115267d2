// MySQL's character set numbers and names: which text must be converted to UTF-8, and from what.
// Must not know columns, connections, nor how text is converted.
import { multiByteSets, upperHalves } from './charset-tables.ts';

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
/** MariaDB's collations that do not pad have the number of the one that does, and this. */
const noPad = 1024;
/** MariaDB numbers its UCA 14.0.0 collations from here on: the high byte tells the character set. */
const firstUca14 = 2048;
const wideUca14: Readonly<Record<number, string>> = { 10: 'ucs2', 11: 'utf16', 12: 'utf32' };
const wide = new Set(['ucs2', 'utf16', 'utf16le', 'utf32']);

/** Whether a column of this character set holds bytes, not text. */
export function isBinaryCharset(charset: number): boolean {
  return charset === binaryCharset;
}

/** Whether ASCII has two or four bytes a character in it, zeros among them. */
export function isWide(name: string): boolean {
  return wide.has(name);
}

/**
 * The character set of a column's text by MySQL's name; null where its bytes are UTF-8 already (ASCII
 * included), as they are in every session whose character set the request did not change.
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

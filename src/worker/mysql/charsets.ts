// MySQL's character set numbers as encodings that iconv-lite knows.
// Must not know columns or connections.
import mysql from 'mysql2';

const binaryCharset = 63;
/**
 * What mysql2's table calls otherwise, or iconv-lite: MySQL's latin1 is Windows' 1252, its utf8mb3 plain
 * UTF-8, its wide sets big-endian. For dec8, keybcs2 and swe7 there is none: Windows' 1252 comes nearest.
 */
const corrections: Readonly<Record<string, string>> = {
  latin1: 'win1252',
  cesu8: 'utf8',
  ucs2: 'utf-16be',
  utf16: 'utf-16be',
  utf32: 'utf-32be',
  eucjpms: 'eucjp',
  macintosh: 'maccenteuro',
  geostd8: 'georgianacademy',
  hp8: 'hproman8',
  dec8: 'win1252',
  keybcs2: 'win1252',
  swe7: 'win1252',
};
/** MariaDB numbers its UCA 14.0.0 collations beyond mysql2's table: the high byte tells the character set. */
const wideUca14: Readonly<Record<number, string>> = { 10: 'ucs2', 11: 'utf16', 12: 'utf32' };

/** Whether a column of this character set holds bytes, not text. */
export function isBinaryCharset(charset: number): boolean {
  return charset === binaryCharset;
}

/** mysql2 loads its table anew at each look, so look once. */
const listedEncodings: readonly (string | undefined)[] = mysql.CharsetToEncoding;

/**
 * The encoding of a column's text; null where its bytes are UTF-8 already (ASCII included), as they
 * are in every session whose character set the request did not change.
 */
export function foreignEncoding(charset: number): string | null {
  const listed = listedEncodings[charset] ?? wideUca14[charset >> 8] ?? 'utf8';
  const encoding = corrections[listed] ?? listed;
  return encoding === 'utf8' || encoding === 'ascii' || encoding === 'binary' ? null : encoding;
}

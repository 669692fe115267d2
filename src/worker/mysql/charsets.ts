// MySQL's character set numbers as encodings that iconv-lite knows.
// Must not know columns or connections.
import iconv from 'iconv-lite';
import mysql from 'mysql2';

const binaryCharset = 63;
/** What mysql2's table calls otherwise: MySQL's latin1 is Windows' 1252; utf8mb3 is plain UTF-8. */
const corrections: Readonly<Record<string, string>> = { latin1: 'win1252', cesu8: 'utf8' };

/** Whether a column of this character set holds bytes, not text. */
export function isBinaryCharset(charset: number): boolean {
  return charset === binaryCharset;
}

/** For each character set number its encoding; mysql2's table is loaded anew at each look, so look once. */
const encodings = mysql.CharsetToEncoding.map((listed) => {
  const encoding = corrections[listed] ?? listed;
  if (encoding === 'utf8' || encoding === 'ascii' || encoding === 'binary') return null;
  return iconv.encodingExists(encoding) ? encoding : 'win1252';
});

/**
 * The encoding of a column's text; null where its bytes are UTF-8 already (ASCII included), as they
 * are in every session whose character set the request did not change.
 */
export function foreignEncoding(charset: number): string | null {
  return encodings[charset] ?? null;
}

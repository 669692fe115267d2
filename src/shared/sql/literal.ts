// Turns one JSON value into an SQL literal that means the same under every sql_mode and charset.
// Must not know where in a statement the literal will stand.

import { isLosslessNumber } from 'lossless-json';

/** A literal, ASCII all of it; or why there is none. `fault` says what the value does not do, and holds no value. */
export type Literal =
  | { readonly ok: true; readonly sql: string }
  | { readonly ok: false; readonly reason: 'too large' }
  | { readonly ok: false; readonly reason: 'wrong value'; readonly fault: string };

const nullLiteral: Literal = { ok: true, sql: 'NULL' };
const trueLiteral: Literal = { ok: true, sql: 'TRUE' };
const falseLiteral: Literal = { ok: true, sql: 'FALSE' };
const tooLarge: Literal = { ok: false, reason: 'too large' };

// The server cuts longer decimals without a word: 65 digits is its DECIMAL, 30 MySQL's fraction.
const maxDigits = 65;
const maxFractionDigits = 30;

/**
 * Encodes a string, number, boolean, null or {"$binary": base64}. Never throws: a literal longer than `maxBytes` is
 * refused before it is made.
 */
export function encodeLiteral(value: unknown, maxBytes: number): Literal {
  if (typeof value === 'string') return encodeString(value, maxBytes);
  if (value === null) return nullLiteral;
  if (value === true) return trueLiteral;
  if (value === false) return falseLiteral;
  if (typeof value === 'number') return encodeNumber(String(value));
  if (isLosslessNumber(value)) return encodeNumber(value.value);
  if (isBinary(value)) return encodeBinary(value.$binary, maxBytes);
  return wrong('is no string, number, boolean, null or {"$binary":"<base64>"}');
}

/**
 * Hex digits hold no quote and no backslash, and the introducer fixes the charset. Always hex, also
 * where '…' would be safe: `? 'b'` would otherwise be two strings to join or a string and its alias,
 * depending on the value. The collation is utf8mb4's default, as weak as any literal's: the session must
 * have the same (plain SET NAMES utf8mb4), or the server refuses to compare the value with a literal (1267).
 */
function encodeString(value: string, maxBytes: number): Literal {
  if (!isWellFormed(value)) return wrong('holds half of a surrogate pair');
  if (hexLiteralBytes(Buffer.byteLength(value)) > maxBytes) return tooLarge;
  return { ok: true, sql: `_utf8mb4 X'${Buffer.from(value, 'utf8').toString('hex')}'` };
}

/** The length of an introducer of seven letters at least, its space, X, two quotes, and so many bytes as hex digits. */
function hexLiteralBytes(valueBytes: number): number {
  return "_binary X''".length + 2 * valueBytes;
}

/** ES2024, in Node 20 already; the compiler's library is ES2023. */
type WellFormed = { readonly isWellFormed: () => boolean };

/** False when the string holds a surrogate without its other half, which UTF-8 cannot carry. */
export function isWellFormed(value: string): boolean {
  return (value as unknown as WellFormed).isWellFormed();
}

/** Keeps the digits as they came; an exponent stays what it is to MySQL, a DOUBLE. */
function encodeNumber(digits: string): Literal {
  const found = /^-?(0|[1-9]\d*)(?:\.(\d+))?([eE][+-]?\d+)?$/.exec(digits);
  if (found === null) return wrong('is a number that JSON does not have');
  const [, whole = '', fraction = '', exponent] = found;
  if (exponent === undefined) {
    if (whole.length + fraction.length > maxDigits || fraction.length > maxFractionDigits) {
      return wrong(
        `has more than ${maxDigits} digits, or ${maxFractionDigits} after the point, and would be cut; send it as a string`,
      );
    }
  }
  return { ok: true, sql: digits };
}

type Binary = { readonly $binary: string };

function isBinary(value: unknown): value is Binary {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return (
    keys.length === 1 && keys[0] === '$binary' && typeof (value as Binary).$binary === 'string'
  );
}

/**
 * With the introducer, because a bare X'…' is a number wherever one is wanted (MariaDB, and MySQL beside other numbers):
 * this one is a binary string everywhere.
 */
function encodeBinary(base64: string, maxBytes: number): Literal {
  if (hexLiteralBytes(Buffer.byteLength(base64, 'base64')) > maxBytes) return tooLarge;
  const bytes = Buffer.from(base64, 'base64');
  // Node skips what is no base64; only what survives the way back was well-formed.
  if (bytes.toString('base64') !== base64) return wrong('is a $binary that is not padded base64');
  return { ok: true, sql: `_binary X'${bytes.toString('hex')}'` };
}

function wrong(fault: string): Literal {
  return { ok: false, reason: 'wrong value', fault };
}

// Turns one JSON value into an SQL literal that means the same under every sql_mode and charset.

import { isLosslessNumber } from 'lossless-json';

/** A literal in ASCII, or why there is none. `fault` continues a sentence about the value, and does not contain it. */
export type Literal =
  | { readonly ok: true; readonly sql: string }
  | { readonly ok: false; readonly reason: 'too large' }
  | { readonly ok: false; readonly reason: 'wrong value'; readonly fault: string };

const nullLiteral: Literal = { ok: true, sql: 'NULL' };
const trueLiteral: Literal = { ok: true, sql: 'TRUE' };
const falseLiteral: Literal = { ok: true, sql: 'FALSE' };
const tooLarge: Literal = { ok: false, reason: 'too large' };

// The server cuts longer decimals without an error: DECIMAL has 65 digits, 30 of them in MySQL's fraction.
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
  return wrong('is not a string, number, boolean, null or {"$binary":"<base64>"}');
}

/**
 * Hex digits contain no quote and no backslash, and the introducer fixes the charset. Strings are always hex, even if '…' would be safe:
 * otherwise `? 'b'` would be two strings to join or a string and its alias, depending on the value. The collation is utf8mb4's
 * default, as weak as any literal's. The session must have the same one (plain SET NAMES utf8mb4), or the server refuses to compare the
 * value with a literal (1267).
 */
function encodeString(value: string, maxBytes: number): Literal {
  if (!isWellFormed(value)) return wrong('contains half of a surrogate pair');
  if (hexLiteralBytes(Buffer.byteLength(value)) > maxBytes) return tooLarge;
  return { ok: true, sql: `_utf8mb4 X'${Buffer.from(value, 'utf8').toString('hex')}'` };
}

/** Length of an introducer of at least seven letters, its space, X, two quotes, and the value as hex digits. */
function hexLiteralBytes(valueBytes: number): number {
  return "_binary X''".length + 2 * valueBytes;
}

/** ES2024: Node 20 has it, the compiler's library (ES2023) does not. */
type WellFormed = { readonly isWellFormed: () => boolean };

/** Whether the string has no surrogate without its other half, which UTF-8 cannot represent. */
export function isWellFormed(value: string): boolean {
  return (value as unknown as WellFormed).isWellFormed();
}

/** Keeps the client's digits; a number with an exponent is a DOUBLE to MySQL. */
function encodeNumber(digits: string): Literal {
  const found = /^-?(0|[1-9]\d*)(?:\.(\d+))?([eE][+-]?\d+)?$/.exec(digits);
  if (found === null) return wrong('is not a number of JSON');
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
 * A bare X'…' is a number where the server expects one (MariaDB; MySQL beside other numbers). With the introducer it is a binary string
 * everywhere.
 */
function encodeBinary(base64: string, maxBytes: number): Literal {
  if (hexLiteralBytes(Buffer.byteLength(base64, 'base64')) > maxBytes) return tooLarge;
  const bytes = Buffer.from(base64, 'base64');
  // Node skips characters that are not base64: only a text that encodes to itself was well-formed.
  if (bytes.toString('base64') !== base64) return wrong('is a $binary that is not padded base64');
  return { ok: true, sql: `_binary X'${bytes.toString('hex')}'` };
}

function wrong(fault: string): Literal {
  return { ok: false, reason: 'wrong value', fault };
}

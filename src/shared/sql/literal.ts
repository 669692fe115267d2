// Turns one JSON value into an SQL literal that means the same under every sql_mode and charset.
// Must not know where in a statement the literal will stand.

import { isLosslessNumber } from 'lossless-json';
import type { FailureCode } from '../failure-codes.ts';

/** Why a value or a set of parameters cannot be bound; `message` is for people and holds no value. */
export type BindFailure = { readonly code: FailureCode; readonly message: string };

/** Literals, or the reason why there is none. */
export type Literal =
  | { readonly ok: true; readonly sql: string }
  | { readonly ok: false; readonly failure: BindFailure };

const nullLiteral: Literal = { ok: true, sql: 'NULL' };
const trueLiteral: Literal = { ok: true, sql: 'TRUE' };
const falseLiteral: Literal = { ok: true, sql: 'FALSE' };

// The server cuts longer decimals without a word: 65 digits is its DECIMAL, 30 MySQL's fraction.
const mostDigits = 65;
const mostFractionDigits = 30;

/**
 * Encodes a string, number, boolean or null; with `allowBinary` also {"$binary": base64}. Never throws: a literal
 * longer than `mostBytes` is refused before it is made.
 */
export function encodeLiteral(value: unknown, allowBinary: boolean, mostBytes: number): Literal {
  if (typeof value === 'string') return encodeString(value, mostBytes);
  if (value === null) return nullLiteral;
  if (value === true) return trueLiteral;
  if (value === false) return falseLiteral;
  if (typeof value === 'number') return encodeNumber(String(value));
  if (isLosslessNumber(value)) return encodeNumber(value.value);
  if (allowBinary && isBinary(value)) return encodeBinary(value.$binary, mostBytes);
  const accepted = allowBinary
    ? 'string, number, boolean, null or {"$binary": …}'
    : 'string, number, boolean or null';
  return failed(`a parameter must be a ${accepted}`);
}

/**
 * Hex digits hold no quote and no backslash, and the introducer fixes the charset. Always hex, also
 * where '…' would be safe: `? 'b'` would otherwise be two strings to join or a string and its alias,
 * depending on the value. The collation is utf8mb4's default, as weak as any literal's: the session must
 * have the same (plain SET NAMES utf8mb4), or the server refuses to compare the value with a literal (1267).
 */
function encodeString(value: string, mostBytes: number): Literal {
  if (!isWellFormed(value)) return failed('a string parameter holds half of a surrogate pair');
  if (hexLiteralBytes(Buffer.byteLength(value)) > mostBytes) return tooLarge(mostBytes);
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
  if (found === null) return failed('a number parameter is not a JSON number');
  const [, whole = '', fraction = '', exponent] = found;
  if (exponent === undefined) {
    if (whole.length + fraction.length > mostDigits || fraction.length > mostFractionDigits) {
      return failed(
        `a number parameter has more than ${mostDigits} digits, or ${mostFractionDigits} after the point, and would be cut; send it as a string`,
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

function encodeBinary(base64: string, mostBytes: number): Literal {
  if (hexLiteralBytes(Buffer.byteLength(base64, 'base64')) > mostBytes) return tooLarge(mostBytes);
  const bytes = Buffer.from(base64, 'base64');
  // Node skips what is no base64; only what survives the way back was well-formed.
  if (bytes.toString('base64') !== base64)
    return failed('a $binary parameter is not padded base64');
  return { ok: true, sql: `_binary X'${bytes.toString('hex')}'` };
}

/** The statement would be longer than the database takes. */
export function tooLarge(mostBytes: number): Literal & { readonly ok: false } {
  const message = `the statement with its PARAMS in it would be longer than ${mostBytes} bytes, which is all that the database takes (max_allowed_packet)`;
  return { ok: false, failure: { code: 'STATEMENT_TOO_LARGE', message } };
}

function failed(message: string): Literal {
  return { ok: false, failure: { code: 'PARAMS_VALUE', message } };
}

// What a column's cells become, decided once per result set from its definition.
// Must not know how cells are written.
import { foreignCharset, isBinaryCharset, isWide } from '../../shared/mysql/charsets.ts';
import type { Column } from '../../shared/mysql/packets.ts';

/** How a cell is written. Small numbers, so that a row's kinds fit into a byte array. */
export const cellKinds = {
  /** MySQL's digits as a JSON number. */
  number: 0,
  /** MySQL's digits as a JSON string. */
  digits: 1,
  /** UTF-8 text. */
  text: 2,
  /** In another character set, to be converted. */
  foreign: 3,
  /** Bytes as base64. */
  binary: 4,
  /** BIT: big-endian bytes as a decimal number in a string. */
  bit: 5,
  /** JSON as it stands, without its spaces. */
  json: 6,
} as const;

/** What a format wants of the kinds that can be written in more than one way. */
export type CellRules = {
  /** Which exact numbers become JSON strings: none, all integers and decimals, or those beyond a double's 53 bits. */
  readonly numbersAsStrings: 'none' | 'all' | 'wide';
  /** Whether a YEAR is a number. */
  readonly yearIsNumber: boolean;
  /** Whether JSON stands as a value; else as its text in a string. */
  readonly jsonIsValue: boolean;
};

/** One of them. */
export type CellKind = (typeof cellKinds)[keyof typeof cellKinds];

const types: Readonly<Record<number, string>> = {
  0: 'DECIMAL',
  1: 'TINY',
  2: 'SHORT',
  3: 'LONG',
  4: 'FLOAT',
  5: 'DOUBLE',
  6: 'NULL',
  7: 'TIMESTAMP',
  8: 'LONGLONG',
  9: 'INT24',
  10: 'DATE',
  11: 'TIME',
  12: 'DATETIME',
  13: 'YEAR',
  14: 'NEWDATE',
  15: 'VARCHAR',
  16: 'BIT',
  17: 'TIMESTAMP2',
  18: 'DATETIME2',
  19: 'TIME2',
  20: 'TYPED_ARRAY',
  242: 'VECTOR',
  244: 'BOOL',
  245: 'JSON',
  246: 'NEWDECIMAL',
  247: 'ENUM',
  248: 'SET',
  249: 'TINY_BLOB',
  250: 'MEDIUM_BLOB',
  251: 'LONG_BLOB',
  252: 'BLOB',
  253: 'VAR_STRING',
  254: 'STRING',
  255: 'GEOMETRY',
};

/** The C API's name of a type on the wire (enum_field_types of mysql_com.h / field_types.h). */
export function typeName(type: number): string {
  return `MYSQL_TYPE_${wireType(type)}`;
}

/** The same without what all begin with; UNKNOWN for a number that is none. */
export function wireType(type: number): string {
  return types[type] ?? 'UNKNOWN';
}

const exactNumbers = new Set([
  'DECIMAL',
  'TINY',
  'SHORT',
  'LONG',
  'LONGLONG',
  'INT24',
  'NEWDECIMAL',
]);
const approximateNumbers = new Set(['FLOAT', 'DOUBLE']);
const numbers = new Set([...exactNumbers, ...approximateNumbers]);
/** Text whatever the character set says: MySQL marks these as binary. */
const alwaysText = new Set([
  'TIMESTAMP',
  'DATE',
  'TIME',
  'DATETIME',
  'YEAR',
  'NEWDATE',
  'TIMESTAMP2',
  'DATETIME2',
  'TIME2',
  'JSON',
  'NULL',
]);
const alwaysBinary = new Set(['GEOMETRY', 'VECTOR']);

/** How a cell is converted before it is written. */
export type Conversion = CharsetConversion | BitConversion;

/** Of a BIT whose cells are its bytes or its decimal digits. */
export type BitConversion = {
  /** As the column is declared, 1 to 64. */
  readonly bits: number;
  /** What a cell is taken for that could be both. */
  readonly rather: 'text' | 'bytes';
};

/** What a cell is that comes in another character set. */
export type CharsetConversion = {
  readonly charset: string;
  /** Some of the column's cells may come in ASCII all the same: those in which there is no zero byte. */
  readonly maybeAscii: boolean;
  /** What it is, once it is UTF-8. */
  readonly kind: CellKind;
};

/** Numbers that may have more digits than a double holds. */
const wideNumbers = new Set(['DECIMAL', 'LONGLONG', 'NEWDECIMAL']);

/** What a cell is, once it is UTF-8. */
export function cellKind(column: Column, rules: CellRules): CellKind {
  const name = types[column.type] ?? '';
  if (exactNumbers.has(name)) {
    const { numbersAsStrings } = rules;
    const isString =
      numbersAsStrings === 'all' || (numbersAsStrings === 'wide' && wideNumbers.has(name));
    return isString ? cellKinds.digits : cellKinds.number;
  }
  if (approximateNumbers.has(name)) return cellKinds.number;
  if (name === 'BIT') return cellKinds.bit;
  if (name === 'YEAR' && rules.yearIsNumber) return cellKinds.number;
  if (rules.jsonIsValue && isJson(column)) return cellKinds.json;
  return isBinary(column) ? cellKinds.binary : cellKinds.text;
}

/** Whether cells are bytes, and so base64. */
export function isBinary(column: Column): boolean {
  const name = wireType(column.type);
  if (alwaysText.has(name) || name === 'BIT' || numbers.has(name)) return false;
  return alwaysBinary.has(name) || isBinaryCharset(column.charset);
}

/** MariaDB's JSON is text with a name. */
function isJson({ type, extendedType }: Column): boolean {
  return wireType(type) === 'JSON' || extendedType === 'json';
}

/**
 * How cells of this kind are converted; null where they are written as they come: text in UTF-8, and a BIT's bytes.
 *
 * A column's own number tells it for text. Numbers, dates, and MySQL's columns of type JSON bear the binary number
 * and come in the character set of the result: JSON always, the others in a wide one, MariaDB's all and MySQL's in
 * part (seen on MariaDB 10.11, MySQL 9.7: decimals as UTF-16, integers and dates in ASCII). What is JSON, a number or
 * a date has ASCII in it, and so a zero byte in any wide character set.
 */
export function findConversion(column: Column, kind: CellKind): Conversion | null {
  if (kind === cellKinds.bit && column.doubtfulBits !== undefined) {
    return { bits: Math.min(Math.max(column.length, 1), 64), rather: column.doubtfulBits };
  }
  if (kind === cellKinds.binary || kind === cellKinds.bit) return null;
  if (!isBinaryCharset(column.charset)) {
    const charset = foreignCharset(column.charset);
    return charset === null ? null : { charset, maybeAscii: false, kind };
  }
  const charset = column.resultCharset;
  if (charset === null) return null;
  const maybeAscii = isWide(charset);
  return maybeAscii || types[column.type] === 'JSON' ? { charset, maybeAscii, kind } : null;
}

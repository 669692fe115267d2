// The columns of a result, from their definitions on the wire: how their cells are written, and how replies describe them.
import { foreignCharset, isBinaryCharset, isWide } from '../../shared/mysql/charsets.ts';
import { byteTypes, isBinary, typeOf, type WireType } from '../../shared/mysql/column-types.ts';
import type { BitConversion } from '../../shared/mysql/doubtful-bits.ts';
import {
  type Column,
  columnFlags,
  columnName,
  identifierText,
} from '../../shared/mysql/packets.ts';

/** How a cell is written. Small numbers, so that a row's kinds fit into a byte array. */
export const cellKinds = {
  /** MySQL's digits as a JSON number. */
  number: 0,
  /** MySQL's digits as a JSON string. */
  digits: 1,
  /** UTF-8 text. */
  text: 2,
  /** Text in another character set, or a BIT that may be text: converted before it is written. */
  foreign: 3,
  /** Bytes as base64. */
  binary: 4,
  /** BIT: big-endian bytes as a decimal number in a string. */
  bit: 5,
  /** JSON as a value, without white space. */
  json: 6,
} as const;

export type CellKind = (typeof cellKinds)[keyof typeof cellKinds];

/** A format's choice for kinds that can be written in more than one way. */
export type CellRules = {
  /** Which exact numbers become JSON strings: none, all integers and decimals, or those that may exceed a double's 53 bits. */
  readonly numbersAsStrings: 'none' | 'all' | 'wide';
  /** Whether a YEAR is a number. */
  readonly yearIsNumber: boolean;
  /** Whether JSON is written as a value; otherwise its text is a string. */
  readonly jsonIsValue: boolean;
};

/** How a cell is converted before it is written. */
export type Conversion = CharsetConversion | BitConversion;

/** A cell in another character set. */
export type CharsetConversion = {
  readonly charset: string;
  /** Cells without a zero byte are ASCII, whatever the character set. */
  readonly maybeAscii: boolean;
  /** The kind of the converted cell. */
  readonly kind: CellKind;
};

/** Chooses how a column's cells are written once they are UTF-8. */
export function cellKind(column: Column, rules: CellRules): CellKind {
  const [name, , , family] = typeOf(column);
  if (family === 'integer' || family === 'decimal') {
    const { numbersAsStrings } = rules;
    // BIGINT and DECIMAL may have more digits than a double holds.
    const isWideNumber = family === 'decimal' || name === 'LONGLONG';
    const isString = numbersAsStrings === 'all' || (numbersAsStrings === 'wide' && isWideNumber);
    return isString ? cellKinds.digits : cellKinds.number;
  }
  if (family === 'float') return cellKinds.number;
  if (family === 'bit') return cellKinds.bit;
  if (name === 'YEAR' && rules.yearIsNumber) return cellKinds.number;
  if (rules.jsonIsValue && isJson(column)) return cellKinds.json;
  return isBinary(column) ? cellKinds.binary : cellKinds.text;
}

/** MariaDB's JSON is text with an extended type. */
function isJson(column: Column): boolean {
  return typeOf(column)[0] === 'JSON' || column.extendedType === 'json';
}

/**
 * Chooses how cells of this kind are converted; null if they are written as they come, as UTF-8 text and a BIT's bytes are.
 *
 * Text is in the column's own character set. Numbers, dates and MySQL's JSON are marked as binary and may come in the result's character
 * set: JSON always does. If that set is wide, so do all of MariaDB's numbers and dates, and some of MySQL's (seen on MariaDB 10.11 and
 * MySQL 9.7: decimals as UTF-16, integers and dates as ASCII). Such cells contain ASCII characters, so a wide cell has a zero byte.
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
  return maybeAscii || typeOf(column)[0] === 'JSON' ? { charset, maybeAscii, kind } : null;
}

/** A column in JSON of protocol buffers (Field of Vitess's proto/query.proto): empty and 0 are missing. */
export type VitessField = {
  readonly name?: string;
  /** Missing: NULL. */
  readonly type?: string;
  readonly table?: string;
  readonly orgTable?: string;
  readonly database?: string;
  readonly orgName?: string;
  readonly columnLength?: number;
  readonly charset?: number;
  readonly decimals?: number;
  readonly flags?: number;
};

/** The flag that MySQL's C client, and so Vitess, adds to numbers (IS_NUM of mysql.h). */
const numberFlag = 0x8000;
const binaryCharset = 63;
const utf8mb4 = 45;

/** Describes a column for Vitess's clients. @param isConverted whether its cells are converted to UTF-8 */
export function describeField(column: Column, isConverted: boolean): VitessField {
  const { origin, length, charset, decimals, flags } = column;
  const type = vitessType(column);
  const isNumber = hasNumberFlag(typeOf(column));
  return present({
    name: columnName(column),
    type: type === 'NULL' ? '' : type,
    table: identifierText(column, origin.table),
    orgTable: identifierText(column, origin.originalTable),
    database: identifierText(column, origin.database),
    orgName: identifierText(column, origin.originalName),
    columnLength: length,
    charset: isConverted ? utf8mb4 : charset,
    decimals,
    flags: isNumber ? flags | numberFlag : flags,
  });
}

/** Leaves out what JSON of protocol buffers leaves out. */
function present(field: Readonly<Record<string, string | number>>): VitessField {
  return Object.fromEntries(
    Object.entries(field).filter(([, value]) => value !== '' && value !== 0),
  );
}

function hasNumberFlag([name, , , family]: WireType): boolean {
  const isNumber = family === 'integer' || family === 'decimal' || family === 'float';
  return isNumber || name === 'NULL' || name === 'YEAR';
}

/** Vitess's name of a column's type, and JSON for MariaDB's JSON. */
export function vitessType(column: Column): string {
  const { flags, charset, extendedType } = column;
  const [, , type, family] = typeOf(column);
  if (extendedType === 'json') return 'JSON';
  if (family === 'integer') return (flags & columnFlags.unsigned) === 0 ? type : `U${type}`;
  if ((flags & columnFlags.enumeration) !== 0) return 'ENUM';
  if ((flags & columnFlags.set) !== 0) return 'SET';
  const isBytes = charset === binaryCharset || (flags & columnFlags.binary) !== 0;
  return isBytes ? (byteTypes[type] ?? type) : type;
}

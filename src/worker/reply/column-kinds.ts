// What a column's cells become, decided once per result set from its definition.
// Must not know how cells are written.
import { foreignEncoding, isBinaryCharset } from '../mysql/charsets.ts';
import type { Column } from '../mysql/packets.ts';

/** How a cell is written. Small numbers, so that a row's kinds fit into a byte array. */
export const cellKinds = {
  /** MySQL's digits as a JSON number. */
  number: 0,
  /** MySQL's digits as a JSON string. */
  digits: 1,
  /** UTF-8 text. */
  text: 2,
  /** Text in another character set, to be converted. */
  foreignText: 3,
  /** Bytes as base64. */
  binary: 4,
  /** BIT: big-endian bytes as a decimal number in a string. */
  bit: 5,
} as const;

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
  return `MYSQL_TYPE_${types[type] ?? 'UNKNOWN'}`;
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

/** @param exactAsStrings whether exact numbers (integers and decimals) become JSON strings */
export function cellKind(column: Column, exactAsStrings: boolean): CellKind {
  const name = types[column.type] ?? '';
  if (exactNumbers.has(name)) return exactAsStrings ? cellKinds.digits : cellKinds.number;
  if (approximateNumbers.has(name)) return cellKinds.number;
  if (name === 'BIT') return cellKinds.bit;
  if (alwaysText.has(name)) return cellKinds.text;
  if (alwaysBinary.has(name) || isBinaryCharset(column.charset)) return cellKinds.binary;
  return foreignEncoding(column.charset) === null ? cellKinds.text : cellKinds.foreignText;
}

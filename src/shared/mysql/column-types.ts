// The types of columns, from their definitions on the wire: SQL's words for them, and how replies and --check describe a column.
import { isBinaryCharset } from './charsets.ts';
import { type Column, columnFlags, columnName } from './packets.ts';

/** `text`: always text, although MySQL marks some of them as binary. `string`: text or bytes, by the character set. */
type Family = 'integer' | 'decimal' | 'float' | 'text' | 'bytes' | 'bit' | 'string';

/** A type on the wire: the C API's name (enum_field_types of field_types.h), SQL's word, and Vitess's (MySQLToType of go/sqltypes/type.go). */
export type WireType = readonly [name: string, sql: string, vitess: string, family: Family];

const unknownType: WireType = ['UNKNOWN', 'UNKNOWN', 'UNKNOWN', 'string'];

const types: Readonly<Record<number, WireType>> = {
  0: ['DECIMAL', 'DECIMAL', 'DECIMAL', 'decimal'],
  1: ['TINY', 'TINYINT', 'INT8', 'integer'],
  2: ['SHORT', 'SMALLINT', 'INT16', 'integer'],
  3: ['LONG', 'INT', 'INT32', 'integer'],
  4: ['FLOAT', 'FLOAT', 'FLOAT32', 'float'],
  5: ['DOUBLE', 'DOUBLE', 'FLOAT64', 'float'],
  6: ['NULL', 'NULL', 'NULL', 'text'],
  7: ['TIMESTAMP', 'TIMESTAMP', 'TIMESTAMP', 'text'],
  8: ['LONGLONG', 'BIGINT', 'INT64', 'integer'],
  9: ['INT24', 'MEDIUMINT', 'INT24', 'integer'],
  10: ['DATE', 'DATE', 'DATE', 'text'],
  11: ['TIME', 'TIME', 'TIME', 'text'],
  12: ['DATETIME', 'DATETIME', 'DATETIME', 'text'],
  13: ['YEAR', 'YEAR', 'YEAR', 'text'],
  14: ['NEWDATE', 'DATE', 'DATE', 'text'],
  15: ['VARCHAR', 'VARCHAR', 'VARCHAR', 'string'],
  16: ['BIT', 'BIT', 'BIT', 'bit'],
  17: ['TIMESTAMP2', 'TIMESTAMP', 'TIMESTAMP', 'text'],
  18: ['DATETIME2', 'DATETIME', 'DATETIME', 'text'],
  19: ['TIME2', 'TIME', 'TIME', 'text'],
  20: ['TYPED_ARRAY', 'TYPED_ARRAY', 'TYPED_ARRAY', 'string'],
  242: ['VECTOR', 'VECTOR', 'VECTOR', 'bytes'],
  244: ['BOOL', 'BOOL', 'BOOL', 'string'],
  245: ['JSON', 'JSON', 'JSON', 'text'],
  246: ['NEWDECIMAL', 'DECIMAL', 'DECIMAL', 'decimal'],
  247: ['ENUM', 'ENUM', 'ENUM', 'string'],
  248: ['SET', 'SET', 'SET', 'string'],
  249: ['TINY_BLOB', 'TEXT', 'TEXT', 'string'],
  250: ['MEDIUM_BLOB', 'TEXT', 'TEXT', 'string'],
  251: ['LONG_BLOB', 'TEXT', 'TEXT', 'string'],
  252: ['BLOB', 'TEXT', 'TEXT', 'string'],
  253: ['VAR_STRING', 'VARCHAR', 'VARCHAR', 'string'],
  254: ['STRING', 'CHAR', 'CHAR', 'string'],
  255: ['GEOMETRY', 'GEOMETRY', 'GEOMETRY', 'bytes'],
};

/** SQL's words for strings of bytes, by the words for text. */
export const byteTypes: Readonly<Record<string, string>> = {
  CHAR: 'BINARY',
  VARCHAR: 'VARBINARY',
  TEXT: 'BLOB',
};

/** A column's type on the wire. */
export function typeOf({ type }: Column): WireType {
  return types[type] ?? unknownType;
}

/** The C API's name of a type on the wire. */
export function typeName(type: number): string {
  return `MYSQL_TYPE_${(types[type] ?? unknownType)[0]}`;
}

/** Whether cells are bytes, and so base64. */
export function isBinary(column: Column): boolean {
  const family = typeOf(column)[3];
  return family === 'bytes' || (family === 'string' && isBinaryCharset(column.charset));
}

/** The description of a column in replies. Keys that do not apply are missing. */
export type ColumnDescription = {
  readonly name: string;
  /** SQL's word, without length: TINYINT … DECIMAL, CHAR, TEXT, JSON …; NULL for a bare NULL. */
  readonly type: string;
  /** Always set for integers; for DECIMAL, FLOAT and DOUBLE only if true. */
  readonly unsigned?: boolean;
  readonly nullable: boolean;
  /** The digits of a DECIMAL, and how many of them follow the point. */
  readonly precision?: number;
  readonly scale?: number;
  /** The cells are base64. */
  readonly encoding?: 'base64';
};

/** MariaDB's types that look like text on the wire. Its VECTOR cannot be distinguished from VARBINARY. */
const extendedTypes: ReadonlyMap<string, string> = new Map([
  ['json', 'JSON'],
  ['uuid', 'UUID'],
  ['inet4', 'INET4'],
  ['inet6', 'INET6'],
]);
/** A greater scale marks a number whose scale is not fixed (31 on MySQL, 39 on MariaDB). */
const maxScale = 30;
const maxPrecision = 65;

/**
 * Describes a column. TINYTEXT to LONGTEXT are TEXT, and TINYBLOB to LONGBLOB are BLOB: only lengths distinguish them, and the lengths
 * of expressions do not.
 */
export function describeColumn(column: Column): ColumnDescription {
  const type = sqlType(column);
  const isUnsigned = (column.flags & columnFlags.unsigned) !== 0;
  const isInteger = typeOf(column)[3] === 'integer';
  const isNumber = type === 'DECIMAL' || type === 'FLOAT' || type === 'DOUBLE';
  return {
    name: columnName(column),
    type,
    ...(isInteger || (isNumber && isUnsigned) ? { unsigned: isUnsigned } : {}),
    ...(type === 'DECIMAL' ? describeDecimal(column, isUnsigned) : {}),
    nullable: (column.flags & columnFlags.notNull) === 0,
    ...(isBinary(column) ? { encoding: 'base64' } : {}),
  };
}

/** SQL's word for a column's type. */
export function sqlType(column: Column): string {
  const extended =
    column.extendedType === null ? undefined : extendedTypes.get(column.extendedType);
  if (extended !== undefined) return extended;
  if ((column.flags & columnFlags.enumeration) !== 0) return 'ENUM';
  if ((column.flags & columnFlags.set) !== 0) return 'SET';
  const type = typeOf(column)[1];
  return isBinary(column) ? (byteTypes[type] ?? type) : type;
}

/** The length counts digits, a point and a sign (my_decimal_length_to_precision of both servers). */
function describeDecimal(
  { length, decimals }: Column,
  isUnsigned: boolean,
): { precision?: number; scale?: number } {
  if (decimals > maxScale) return {};
  const precision = length - (decimals > 0 ? 1 : 0) - (isUnsigned || length === 0 ? 0 : 1);
  return { precision: Math.min(precision, maxPrecision), scale: decimals };
}

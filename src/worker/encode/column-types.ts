// What a column is in SQL's words, from its definition on the wire: how /v1 describes columns.
// Must not know how cells are written.
import { type Column, columnFlags, columnName } from '../../shared/mysql/packets.ts';
import { isBinary, wireType } from './column-kinds.ts';

/** A column of a result as a reply describes it; keys that say nothing of the column are missing. */
export type ColumnDescription = {
  readonly name: string;
  /** SQL's word, without length: TINYINT … DECIMAL, CHAR, TEXT, JSON …; NULL for a bare NULL. */
  readonly type: string;
  /** Always there for integers; for DECIMAL, FLOAT and DOUBLE where it is true. */
  readonly unsigned?: boolean;
  readonly nullable: boolean;
  /** Digits of a DECIMAL, and those of them behind the point. */
  readonly precision?: number;
  readonly scale?: number;
  /** The cells are base64. */
  readonly encoding?: 'base64';
};

const integers: ReadonlyMap<string, string> = new Map([
  ['TINY', 'TINYINT'],
  ['SHORT', 'SMALLINT'],
  ['INT24', 'MEDIUMINT'],
  ['LONG', 'INT'],
  ['LONGLONG', 'BIGINT'],
]);
/** Those whose word on the wire is another; MariaDB and MySQL send a few of them never. */
const others: ReadonlyMap<string, string> = new Map([
  ['NEWDECIMAL', 'DECIMAL'],
  ['NEWDATE', 'DATE'],
  ['TIME2', 'TIME'],
  ['DATETIME2', 'DATETIME'],
  ['TIMESTAMP2', 'TIMESTAMP'],
]);
/** MariaDB's types that look like text on the wire. Its kinds of geometry do not; its VECTOR cannot be told from VARBINARY. */
const extendedTypes: ReadonlyMap<string, string> = new Map([
  ['json', 'JSON'],
  ['uuid', 'UUID'],
  ['inet4', 'INET4'],
  ['inet6', 'INET6'],
]);
const approximate = new Set(['FLOAT', 'DOUBLE']);
/** More is a mark for a number whose scale is not fixed (31 on MySQL, 39 on MariaDB). */
const mostScale = 30;
const mostPrecision = 65;

/**
 * Describes a column. TINYTEXT to LONGTEXT are TEXT, and so with BLOB: only lengths tell them apart, which those of
 * expressions do not.
 */
export function describeColumn(column: Column): ColumnDescription {
  const type = sqlType(column);
  const isUnsigned = (column.flags & columnFlags.unsigned) !== 0;
  const isInteger = integers.has(wireType(column.type));
  const isNumber = type === 'DECIMAL' || approximate.has(type);
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
  const type = wireType(column.type);
  const isBytes = isBinary(column);
  if (type === 'STRING') return isBytes ? 'BINARY' : 'CHAR';
  if (type === 'VAR_STRING' || type === 'VARCHAR') return isBytes ? 'VARBINARY' : 'VARCHAR';
  if (type.endsWith('BLOB')) return isBytes ? 'BLOB' : 'TEXT';
  return integers.get(type) ?? others.get(type) ?? type;
}

/** The length counts digits, a point and a sign (my_decimal_length_to_precision of both servers). */
function describeDecimal(
  { length, decimals }: Column,
  isUnsigned: boolean,
): { precision?: number; scale?: number } {
  if (decimals > mostScale) return {};
  const precision = length - (decimals > 0 ? 1 : 0) - (isUnsigned || length === 0 ? 0 : 1);
  return { precision: Math.min(precision, mostPrecision), scale: decimals };
}

// What a column is in Vitess's words, from its definition on the wire: how the PlanetScale protocol describes columns.
// Must not know how cells are written.
import {
  type Column,
  columnFlags,
  columnName,
  identifierText,
} from '../../shared/mysql/packets.ts';
import { wireType } from './column-kinds.ts';

/** A column of a result as JSON of protocol buffers has it: what is empty or 0 is missing. Vitess's proto/query.proto, Field. */
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

const integers: ReadonlyMap<string, string> = new Map([
  ['TINY', 'INT8'],
  ['SHORT', 'INT16'],
  ['INT24', 'INT24'],
  ['LONG', 'INT32'],
  ['LONGLONG', 'INT64'],
]);
const others: ReadonlyMap<string, string> = new Map([
  ['FLOAT', 'FLOAT32'],
  ['DOUBLE', 'FLOAT64'],
  ['NEWDECIMAL', 'DECIMAL'],
  ['NEWDATE', 'DATE'],
  ['TIME2', 'TIME'],
  ['DATETIME2', 'DATETIME'],
  ['TIMESTAMP2', 'TIMESTAMP'],
]);
/** To which MySQL's C client adds the flag of a number, and Vitess with it (IS_NUM of mysql.h). */
const flaggedNumbers = new Set([
  ...integers.keys(),
  'DECIMAL',
  'FLOAT',
  'DOUBLE',
  'NULL',
  'YEAR',
  'NEWDECIMAL',
]);
const numberFlag = 0x8000;
const binaryCharset = 63;
const utf8mb4 = 45;

/** Describes a column. @param isConverted whether its cells come in another character set, and leave as UTF-8 */
export function describeField(column: Column, isConverted: boolean): VitessField {
  const { origin, length, charset, decimals, flags } = column;
  const type = vitessType(column);
  const isNumber = flaggedNumbers.has(wireType(column.type));
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

/** As JSON of protocol buffers does. */
function present(field: Readonly<Record<string, string | number>>): VitessField {
  return Object.fromEntries(
    Object.entries(field).filter(([, value]) => value !== '' && value !== 0),
  );
}

/** Vitess's name of a column's type (go/sqltypes/type.go, MySQLToType), and JSON where MariaDB calls it so. */
export function vitessType({ type, flags, charset, extendedType }: Column): string {
  if (extendedType === 'json') return 'JSON';
  const name = wireType(type);
  const integer = integers.get(name);
  if (integer !== undefined) {
    return (flags & columnFlags.unsigned) === 0 ? integer : `U${integer}`;
  }
  if ((flags & columnFlags.enumeration) !== 0) return 'ENUM';
  if ((flags & columnFlags.set) !== 0) return 'SET';
  const isBytes = charset === binaryCharset || (flags & columnFlags.binary) !== 0;
  if (name === 'STRING') return isBytes ? 'BINARY' : 'CHAR';
  if (name === 'VAR_STRING' || name === 'VARCHAR') return isBytes ? 'VARBINARY' : 'VARCHAR';
  if (name.endsWith('BLOB')) return isBytes ? 'BLOB' : 'TEXT';
  return others.get(name) ?? name;
}

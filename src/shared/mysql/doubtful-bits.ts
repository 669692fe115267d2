// BITs that a function has returned: servers send them as bytes, as decimal digits or as characters. Which columns those are, and how their cells are read.
import { decode } from './charsets.ts';
import { type Column, columnFlags, columnName } from './packets.ts';

/** The kind of server that sends the columns. */
export type Flavour = 'mariadb' | 'mysql';

/** MYSQL_TYPE_BIT */
const bitType = 16;

/** MySQL's functions that send a BIT as its decimal digits (seen on 9.7); all others send its bytes. */
const textFunctions = /\b(?:any_value|coalesce|greatest|ifnull|least)\b/i;
/** The expressions whose BITs MariaDB sends as bytes (seen on 10.11 and 11.8); it sends all others as decimal digits. */
const byteFunctions = /\b(?:over|last_value)\b/i;

/** A UNION is read from a temporary table. */
const union = /\bunion\b/i;

/**
 * Whether the cells of a column may be the decimal digits of a BIT. Columns of a table, also of a temporary one, always come as bytes.
 * MariaDB marks all others as binary. MySQL names the database of a table's columns; a temporary table's columns have a name but no
 * table.
 */
function isDoubtful({ type, flags, origin }: Column, flavour: Flavour): boolean {
  if (type !== bitType) return false;
  if (flavour === 'mariadb') return (flags & columnFlags.binary) !== 0;
  const isOfTemporary = origin.table.length === 0 && origin.originalName.length > 0;
  return origin.database.length === 0 && !isOfTemporary;
}

/** Whether some of the columns are doubtful. */
export function hasDoubtfulBits(columns: readonly Column[], flavour: Flavour): boolean {
  return columns.some((column) => isDoubtful(column, flavour));
}

/**
 * One letter for each column says how to read a cell that could be both: `t`ext, `b`ytes, or `-` if there is no doubt. The name of a column
 * without an alias is its expression; for others the guess uses the statement.
 */
export function guessBits(columns: readonly Column[], flavour: Flavour, sql: string): string {
  let guesses = '';
  for (const column of columns) {
    if (!isDoubtful(column, flavour)) {
      guesses += '-';
      continue;
    }
    guesses += isRatherText(column, flavour, sql) ? 't' : 'b';
  }
  return guesses;
}

function isRatherText(column: Column, flavour: Flavour, sql: string): boolean {
  const name = columnName(column);
  const text = name.includes('(') ? name : sql;
  if (flavour === 'mariadb') return !byteFunctions.test(text);
  const isMaterialised = column.origin.table.length > 0 && union.test(sql);
  return !isMaterialised && textFunctions.test(text);
}

/** The columns with their guesses. */
export function withGuesses(columns: readonly Column[], guesses: string): readonly Column[] {
  return columns.map((column, at) => {
    const guess = guesses[at];
    if (guess === '-' || guess === undefined) return column;
    return { ...column, doubtfulBits: guess === 't' ? 'text' : 'bytes' };
  });
}

/** How the cells of such a column are read. */
export type BitConversion = {
  /** The declared number of bits, 1 to 64. */
  readonly bits: number;
  /** How a cell is read that could be both. */
  readonly rather: 'text' | 'bytes';
};

/** 2^64 - 1 */
const maxDigits = 20;
const digitZero = 0x30;
const digitNine = 0x39;

/**
 * The value of a cell; null: it is not a BIT's.
 *
 * The bytes of a BIT(n) are exactly ⌈n/8⌉, and less than 2^n. So are the digits only where n mod 8 is 6, 7 or 0, and there are ⌈n/8⌉ of
 * them: then `rather` decides. MySQL's IF, CASE, NULLIF, LAG and LEAD take the bytes for latin1 and send them as
 * UTF-8 (seen on 9.7).
 */
export function readBits(cell: Buffer, { bits, rather }: BitConversion): bigint | null {
  const bytes = fromBytes(cell, bits);
  const text = fromDigits(cell, bits);
  if (bytes !== null && text !== null) return rather === 'text' ? text : bytes;
  return bytes ?? text ?? fromCharacters(cell, bits);
}

/** A value as the bytes of a BIT(n). */
export function bitBytes(value: bigint, bits: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes.subarray(8 - byteCount(bits));
}

function byteCount(bits: number): number {
  return Math.ceil(bits / 8);
}

function fromBytes(bytes: Buffer, bits: number): bigint | null {
  if (bytes.length !== byteCount(bits)) return null;
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return fitting(value, bits);
}

function fromDigits(text: Buffer, bits: number): bigint | null {
  const { length } = text;
  if (length === 0 || length > maxDigits || (text[0] === digitZero && length > 1)) return null;
  if (!text.every((byte) => byte >= digitZero && byte <= digitNine)) return null;
  return fitting(BigInt(text.toString('latin1')), bits);
}

function fromCharacters(text: Buffer, bits: number): bigint | null {
  const bytes: number[] = [];
  for (const character of text.toString()) {
    const byte = latin1Bytes.get(character);
    if (byte === undefined) return null;
    bytes.push(byte);
  }
  return fromBytes(Buffer.from(bytes), bits);
}

function fitting(value: bigint, bits: number): bigint | null {
  return value >> BigInt(bits) === 0n ? value : null;
}

/** MySQL's latin1, the other way round. */
const latin1Bytes: ReadonlyMap<string, number> = new Map(
  Array.from({ length: 256 }, (_, byte) => [decode(Buffer.of(byte), 'latin1'), byte]),
);

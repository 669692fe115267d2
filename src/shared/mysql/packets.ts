// MySQL's packets as values: OK, EOF, ERR and column definitions.
import { decode, foreignName, isWide } from './charsets.ts';

/** Status flags of OK and EOF packets (MySQL's SERVER_STATUS_flags_enum). */
export const serverStatus = {
  inTransaction: 0x0001,
  autocommit: 0x0002,
  moreResults: 0x0008,
  stateChanged: 0x4000,
} as const;

/** SESSION_TRACK_SYSTEM_VARIABLES. */
const systemVariable = 0;

/** Flags of a column definition (MySQL's column definition flags) that describe its type. */
export const columnFlags = {
  notNull: 0x0001,
  unsigned: 0x0020,
  binary: 0x0080,
  enumeration: 0x0100,
  set: 0x0800,
} as const;

/** Every definition begins with `def`, in the character set of the result (`def` is the same in ucs2 and utf16). */
const wideCatalogs: ReadonlyMap<string, string> = new Map([
  ['\0d\0e\0f', 'utf16'],
  ['d\0e\0f\0', 'utf16le'],
  ['\0\0\0d\0\0\0e\0\0\0f', 'utf32'],
]);

/** First bytes of packets, by kind. */
export const packetMarkers = { ok: 0x00, localInfile: 0xfb, eof: 0xfe, error: 0xff } as const;

/** A write's answer. Counts are exact up to 2^64-1: bigint if a number cannot hold them. */
export type OkPacket = {
  readonly affectedRows: number | bigint;
  readonly insertId: number | bigint;
  readonly status: number;
  readonly warnings: number;
  /** The server's message, in its language: `Rows matched: 1  Changed: 0  Warnings: 0`; '' if there is none. */
  readonly info: string;
};

/** An error that MySQL reported. */
export type ServerError = {
  readonly errno: number;
  readonly sqlState: string;
  readonly message: string;
};

/** The origin of a column; an expression has no table. Bytes as on the wire. */
export type ColumnOrigin = {
  readonly database: Buffer;
  /** The statement's name for it. */
  readonly table: Buffer;
  readonly originalTable: Buffer;
  readonly originalName: Buffer;
};

/** One column of a result set. `name` is a copy of the bytes on the wire. */
export type Column = {
  readonly name: Buffer;
  readonly origin: ColumnOrigin;
  readonly type: number;
  readonly charset: number;
  readonly flags: number;
  readonly length: number;
  readonly decimals: number;
  /** MariaDB's name of a type without a number: `json`, `uuid`, `inet6`, `point`; null: there is none. */
  readonly extendedType: string | null;
  /** MySQL's name of the character set of its name, and of text without a character set number; null: UTF-8. */
  readonly resultCharset: string | null;
  /** How to read the cells of a BIT that could be decimal text or bytes. */
  readonly doubtfulBits?: 'text' | 'bytes';
};

/** Walks over the fields of one packet. Reading past the end throws RangeError. */
class FieldReader {
  readonly #bytes: Buffer;
  #position: number;
  readonly #end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.#bytes = bytes;
    this.#position = start;
    this.#end = end;
  }

  #take(count: number): number {
    const start = this.#position;
    if (start + count > this.#end) throw new RangeError('packet ends early');
    this.#position = start + count;
    return start;
  }

  skip(count: number): void {
    this.#take(count);
  }

  integer(size: 1 | 2 | 3 | 4): number {
    return this.#bytes.readUIntLE(this.#take(size), size);
  }

  /** A length-encoded integer; bigint if a number cannot hold it exactly. */
  lengthEncoded(): number | bigint {
    const first = this.integer(1);
    if (first < 0xfb) return first;
    if (first === 0xfc) return this.integer(2);
    if (first === 0xfd) return this.integer(3);
    const wide = this.#bytes.readBigUInt64LE(this.#take(8));
    return wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide;
  }

  lengthEncodedBytes(): Buffer {
    const length = Number(this.lengthEncoded());
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** A reader of the next counted bytes. */
  lengthEncodedReader(): FieldReader {
    const length = Number(this.lengthEncoded());
    const start = this.#take(length);
    return new FieldReader(this.#bytes, start, start + length);
  }

  /** Text at the end of a packet, with its length; '' if the length is wrong: a server without session tracking may omit it. */
  info(): string {
    const start = this.#position + 1;
    const end = start + this.integer(1);
    return end <= this.#end ? this.#bytes.toString('latin1', start, end) : '';
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#end;
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#position, this.#end);
  }
}

/** The number of columns that a result set header announces, which holds nothing else. */
export function parseColumnCount(bytes: Buffer, start: number, end: number): number {
  const first = bytes[start] as number;
  if (end === start + 1 && first < 0xfb) return first;
  const reader = new FieldReader(bytes, start, end);
  const count = Number(reader.lengthEncoded());
  if (!reader.isAtEnd) throw new RangeError('expected the header of a result');
  return count;
}

/** Parses an OK packet (marker 0x00, protocol 4.1). */
export function parseOk(bytes: Buffer, start: number, end: number): OkPacket {
  const reader = new FieldReader(bytes, start + 1, end);
  const affectedRows = reader.lengthEncoded();
  const insertId = reader.lengthEncoded();
  const status = reader.integer(2);
  const warnings = reader.integer(2);
  return { affectedRows, insertId, status, warnings, info: reader.isAtEnd ? '' : reader.info() };
}

/** The status flags of an EOF packet (marker 0xfe, shorter than 9 bytes). */
export function parseEofStatus(bytes: Buffer, start: number, end: number): number {
  if (end - start < 5 || bytes[start] !== packetMarkers.eof) {
    throw new RangeError('expected an EOF packet');
  }
  return (bytes[start + 3] as number) | ((bytes[start + 4] as number) << 8);
}

/** The number of warnings in an EOF packet whose status was parsed. */
export function parseEofWarnings(bytes: Buffer, start: number): number {
  return (bytes[start + 1] as number) | ((bytes[start + 2] as number) << 8);
}

/**
 * The character_set_results that an OK packet reports (CLIENT_SESSION_TRACK, MySQL protocol, "session state information"): MySQL's name if
 * text in it must be converted, otherwise null. Undefined: the packet does not report it, or cannot be read.
 */
export function parseResultCharset(
  bytes: Buffer,
  start: number,
  end: number,
): string | null | undefined {
  try {
    return findResultCharset(new FieldReader(bytes, start + 1, end));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function findResultCharset(ok: FieldReader): string | null | undefined {
  ok.lengthEncoded();
  ok.lengthEncoded();
  ok.skip(4);
  if (ok.isAtEnd) return undefined;
  ok.lengthEncodedBytes();
  const changes = ok.lengthEncodedReader();
  let found: string | null | undefined;
  while (!changes.isAtEnd) {
    const type = changes.integer(1);
    const change = changes.lengthEncodedReader();
    while (type === systemVariable && !change.isAtEnd) {
      const name = change.lengthEncodedBytes().toString('latin1');
      const value = change.lengthEncodedBytes().toString('latin1');
      if (name === 'character_set_results') found = foreignName(value);
    }
  }
  return found;
}

/**
 * Parses an ERR packet. Before the handshake has ended there is no SQL state in it.
 * @param charset of the message, by MySQL's name; null: UTF-8
 */
export function parseError(
  bytes: Buffer,
  start: number,
  end: number,
  charset: string | null = null,
): ServerError {
  const reader = new FieldReader(bytes, start + 1, end);
  const errno = reader.integer(2);
  const text = reader.rest();
  const hasState = text[0] === 0x23 && text.length >= 6;
  return {
    errno,
    sqlState: hasState ? text.toString('latin1', 1, 6) : 'HY000',
    message: decodeMessage(hasState ? text.subarray(6) : text, charset),
  };
}

/** Servers end a message at its first zero byte. Only the beginning of a wide one arrives, perhaps with half a unit at its end. */
function decodeMessage(text: Buffer, charset: string | null): string {
  if (charset === null) return text.toString();
  const isCut = isWide(charset) && text.length % 2 === 1;
  return decode(isCut ? Buffer.concat([text, Buffer.of(0)]) : text, charset);
}

/** After the names: a length, character set, length, type, flags, decimals (MySQL protocol, "Column Definition", 4.1). */
const definitionTailBytes = 11;

/**
 * Whether a packet has the fields of a column definition, so that `parseColumn` can read it. Other packets in its place, such as the end
 * of the definitions, do not.
 * @param extended as for `parseColumn`
 */
export function isColumnDefinition(
  bytes: Buffer,
  start: number,
  end: number,
  extended: boolean,
): boolean {
  let at = start;
  for (let fields = extended ? 7 : 6; fields > 0; fields -= 1) {
    if (at >= end) return false;
    const length = bytes[at] as number;
    if (length < 0xfb) at += 1 + length;
    else if (length === 0xfc && at + 2 < end) at += 3 + bytes.readUInt16LE(at + 1);
    else return false;
  }
  return at + definitionTailBytes <= end;
}

/**
 * Parses a column definition.
 * @param extended whether MariaDB's extended metadata was negotiated: one more field in each definition
 */
export function parseColumn(bytes: Buffer, start: number, end: number, extended: boolean): Column {
  // One copy, of which the names are slices: the next read overwrites the original.
  const definition = Buffer.from(bytes.subarray(start, end));
  const reader = new FieldReader(definition, 0, definition.length);
  const resultCharset = wideCatalogs.get(reader.lengthEncodedBytes().toString('latin1')) ?? null;
  const database = reader.lengthEncodedBytes();
  const table = reader.lengthEncodedBytes();
  const originalTable = reader.lengthEncodedBytes();
  const name = reader.lengthEncodedBytes();
  const originalName = reader.lengthEncodedBytes();
  const origin = { database, table, originalTable, originalName };
  const extendedType = extended ? findExtendedType(reader.lengthEncodedReader()) : null;
  reader.skip(1);
  const charset = reader.integer(2);
  const length = reader.integer(4);
  const type = reader.integer(1);
  const flags = reader.integer(2);
  const decimals = reader.integer(1);
  return { name, origin, type, charset, flags, length, decimals, extendedType, resultCharset };
}

/**
 * The name in MariaDB's extended metadata: of the type (0), or of the format of its text (1). Other kinds are skipped (MariaDB protocol, "Result Set Packets", extended metadata).
 */
function findExtendedType(metadata: FieldReader): string | null {
  let found: string | null = null;
  while (!metadata.isAtEnd) {
    const kind = metadata.integer(1);
    const name = metadata.lengthEncodedBytes().toString('latin1');
    if (kind <= 1) found ??= name;
  }
  return found;
}

/** A column's name as text. */
export function columnName(column: Column): string {
  return identifierText(column, column.name);
}

/** A name of a column's definition as text. */
export function identifierText({ resultCharset }: Column, name: Buffer): string {
  return decode(name, resultCharset ?? 'utf8mb4');
}

/**
 * The columns of a result in this character set. Their definitions do not show it if ASCII is the same in it as in UTF-8.
 */
export function inCharset(columns: readonly Column[], charset: string): readonly Column[] {
  return columns.map((column) =>
    column.resultCharset === null && !isWide(charset)
      ? { ...column, resultCharset: charset }
      : column,
  );
}

// What MySQL's packets say: OK, EOF, ERR and column definitions as values.
// Must not know sockets, nor what becomes of a result.
import { isUtf8 } from 'node:buffer';

/** Status flags of OK and EOF packets (MySQL's SERVER_STATUS_flags_enum). */
export const serverStatus = {
  inTransaction: 0x0001,
  autocommit: 0x0002,
  moreResults: 0x0008,
  stateChanged: 0x4000,
} as const;

/** First bytes that tell packets apart. */
export const packetMarkers = { ok: 0x00, localInfile: 0xfb, eof: 0xfe, error: 0xff } as const;

/** A write's answer; counts are exact up to 2^64-1, bigint past what a number holds. */
export type OkPacket = {
  readonly affectedRows: number | bigint;
  readonly insertId: number | bigint;
  readonly status: number;
  readonly warnings: number;
};

/** An error that MySQL reported. */
export type ServerError = {
  readonly errno: number;
  readonly sqlState: string;
  readonly message: string;
};

/** One column of a result set. `name` is a copy of the bytes on the wire. */
export type Column = {
  readonly name: Buffer;
  readonly type: number;
  readonly charset: number;
  readonly flags: number;
  readonly length: number;
  readonly decimals: number;
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

  /** A length-encoded integer; bigint where it does not fit into a number exactly. */
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

  rest(): Buffer {
    return this.#bytes.subarray(this.#position, this.#end);
  }
}

/** The number of columns that a result set header announces. */
export function parseColumnCount(bytes: Buffer, start: number, end: number): number {
  const first = bytes[start] as number;
  return end > start && first < 0xfb
    ? first
    : Number(new FieldReader(bytes, start, end).lengthEncoded());
}

/** Parses an OK packet (marker 0x00, protocol 4.1). */
export function parseOk(bytes: Buffer, start: number, end: number): OkPacket {
  const reader = new FieldReader(bytes, start + 1, end);
  const affectedRows = reader.lengthEncoded();
  const insertId = reader.lengthEncoded();
  const status = reader.integer(2);
  return { affectedRows, insertId, status, warnings: reader.integer(2) };
}

/** The status flags of an EOF packet (marker 0xfe, shorter than 9 bytes). */
export function parseEofStatus(bytes: Buffer, start: number, end: number): number {
  if (end - start < 5 || bytes[start] !== packetMarkers.eof) {
    throw new RangeError('no end where one was due');
  }
  return (bytes[start + 3] as number) | ((bytes[start + 4] as number) << 8);
}

/** Parses an ERR packet. Before the handshake has ended there is no SQL state in it. */
export function parseError(bytes: Buffer, start: number, end: number): ServerError {
  const reader = new FieldReader(bytes, start + 1, end);
  const errno = reader.integer(2);
  const text = reader.rest();
  const hasState = text[0] === 0x23 && text.length >= 6;
  return {
    errno,
    sqlState: hasState ? text.toString('latin1', 1, 6) : 'HY000',
    message: decodeText(hasState ? text.subarray(6) : text),
  };
}

/**
 * Parses a column definition.
 * @param extended whether MariaDB's extended metadata was negotiated: one more field in each definition
 */
export function parseColumn(bytes: Buffer, start: number, end: number, extended: boolean): Column {
  const reader = new FieldReader(bytes, start, end);
  for (const _skipped of ['catalog', 'schema', 'table', 'original table']) {
    reader.lengthEncodedBytes();
  }
  const name = Buffer.from(reader.lengthEncodedBytes());
  reader.lengthEncodedBytes();
  if (extended) reader.lengthEncodedBytes();
  reader.skip(1);
  const charset = reader.integer(2);
  const length = reader.integer(4);
  const type = reader.integer(1);
  const flags = reader.integer(2);
  return { name, type, charset, flags, length, decimals: reader.integer(1) };
}

/** Text that MySQL sent outside of rows: UTF-8, or Latin-1 where a session was told to speak otherwise. */
export function decodeText(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('utf8') : bytes.toString('latin1');
}

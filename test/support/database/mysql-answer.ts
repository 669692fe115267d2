// Answers of a MySQL server, made by hand: packets of the text protocol as bytes.

const longest = 0xffffff;

/** The content of a column definition. Everything else in it is empty. */
export type ColumnWish = {
  readonly name?: string;
  readonly type?: number;
  readonly charset?: number;
  readonly flags?: number;
  readonly length?: number;
  readonly decimals?: number;
  /** MariaDB's extended metadata, whatever is in it: names of a type (0) or format (1); its field is missing where false. */
  readonly extended?: boolean | readonly (readonly [kind: number, name: string])[];
};

/** Wire numbers of some types and character sets. */
export const wire = { long: 3, double: 5, bit: 16, blob: 252, text: 253, utf8mb4: 45, binary: 63 };
/** Status flags. */
export const flags = { autocommit: 2, more: 8 };

/** A length-encoded integer. */
export function lengthEncoded(value: number): Buffer {
  if (value < 251) return Buffer.from([value]);
  const size = value < 0x10000 ? 2 : value < 0x1000000 ? 3 : 6;
  const bytes = Buffer.alloc(size === 6 ? 9 : size + 1);
  bytes[0] = { 2: 0xfc, 3: 0xfd, 6: 0xfe }[size] as number;
  bytes.writeUIntLE(value, 1, size);
  return bytes;
}

const counted = (value: Buffer | string): Buffer => {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([lengthEncoded(bytes.length), bytes]);
};

const int16 = (value: number) => Buffer.from([value & 255, value >> 8]);
const int32 = (value: number) => Buffer.concat([int16(value & 0xffff), int16(value >>> 16)]);

/** A column definition. */
export function columnPacket(wish: ColumnWish = {}): Buffer {
  const { name = 'c', type = wire.text, charset = wire.utf8mb4, extended = false } = wish;
  const { flags: columnFlags = 0, length = 255, decimals = 0 } = wish;
  const entries = extended === true ? [[1, 'json'] as const] : extended || [];
  const metadata = entries.map(([kind, word]) =>
    Buffer.concat([Buffer.from([kind]), counted(word)]),
  );
  return Buffer.concat([
    ...['def', 's', 't', 't', name, name].map(counted),
    ...(extended === false ? [] : [counted(Buffer.concat(metadata))]),
    Buffer.from([12]),
    int16(charset),
    int32(length),
    Buffer.from([type]),
    int16(columnFlags),
    Buffer.from([decimals, 0, 0]),
  ]);
}

/** A row; null is NULL. */
export function rowPacket(cells: readonly (Buffer | string | null)[]): Buffer {
  return Buffer.concat(cells.map((cell) => (cell === null ? Buffer.from([0xfb]) : counted(cell))));
}

export function eofPacket(status = flags.autocommit): Buffer {
  return Buffer.concat([Buffer.from([0xfe, 0, 0]), int16(status)]);
}

export function okPacket(affected = 0, insertId = 0, status = flags.autocommit): Buffer {
  return Buffer.concat([
    Buffer.from([0]),
    lengthEncoded(affected),
    lengthEncoded(insertId),
    int16(status),
    int16(0),
  ]);
}

export function errorPacket(errno: number, message: string): Buffer {
  return Buffer.concat([Buffer.from([0xff]), int16(errno), Buffer.from(`#42000${message}`)]);
}

/** A whole result set as payloads. */
export function resultSet(
  columns: readonly ColumnWish[],
  rows: readonly (readonly (Buffer | string | null)[])[],
  status = flags.autocommit,
): Buffer[] {
  return [
    lengthEncoded(columns.length),
    ...columns.map(columnPacket),
    eofPacket(status),
    ...rows.map(rowPacket),
    eofPacket(status),
  ];
}

/** Payloads as the bytes of one answer: headers, sequence numbers from 1 or `first`, continuation past 16 MiB. */
export function toBytes(payloads: readonly Buffer[], first = 1): Buffer {
  const pieces: Buffer[] = [];
  let sequence = first;
  for (const payload of payloads) {
    for (let from = 0; from <= payload.length; from += longest) {
      const piece = payload.subarray(from, from + longest);
      const header = Buffer.alloc(4);
      header.writeUIntLE(piece.length, 0, 3);
      header[3] = sequence++ & 255;
      pieces.push(header, piece);
      if (piece.length < longest) break;
    }
  }
  return Buffer.concat(pieces);
}

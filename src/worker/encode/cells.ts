// The cells of a row packet (MySQL's text protocol): their positions, and each cell as JSON. Hot: numbers and NULL allocate nothing.
import { decode } from '../../shared/mysql/charsets.ts';
import { readBits } from '../../shared/mysql/doubtful-bits.ts';
import { type CellKind, type CharsetConversion, type Conversion, cellKinds } from './columns.ts';
import { compactJson, isDigit, isJsonNumber } from './json.ts';
import { writeBase64, writeBytes, writeText } from './text.ts';
import type { ReplyWriter } from './writer.ts';

const zero = 0x30;
/** No type's text is longer: DOUBLE(255,30) has 255 digits, point and sign; 1e308 has 309. */
const maxNumberBytes = 1024;
/** BIT(64) is the longest. */
export const maxBitBytes = 8;

/** Writes `null`, for which the caller has made room. Returns the end in `target`. */
export function writeNull(target: Buffer, at: number): number {
  target[at] = 0x6e;
  target[at + 1] = 0x75;
  target[at + 2] = 0x6c;
  target[at + 3] = 0x6c;
  return at + 4;
}

/**
 * Writes a cell of any kind, and makes room for it.
 * @param conversion null for every kind except `foreign`
 */
export function writeCell(
  out: ReplyWriter,
  kind: CellKind,
  conversion: Conversion | null,
  source: Buffer,
  start: number,
  end: number,
): void {
  switch (kind) {
    case cellKinds.number:
      out.reserve(maxNumberBytes);
      writeNumber(out, source, start, end);
      return;
    case cellKinds.digits:
      writeDigits(out, source, start, end);
      return;
    case cellKinds.text:
      writeText(out, source, start, end);
      return;
    case cellKinds.foreign:
      if (conversion !== null) writeForeign(out, conversion, source, start, end);
      return;
    case cellKinds.binary:
      writeBase64(out, source, start, end);
      return;
    case cellKinds.bit:
      writeBit(out, source, start, end);
      return;
    case cellKinds.json:
      writeJson(out, source, start, end);
      return;
    default:
      kind satisfies never;
  }
}

/**
 * Writes MySQL's digits without ZEROFILL's zeros. The caller has made room.
 * Text that JSON does not take as a number becomes a string, so that nothing that a server sends breaks the document: some servers of
 * the protocol send `inf`, `-inf` and `nan`. Text longer than any number becomes a string as well.
 */
function writeNumber(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  const from = skipZeros(source, start, end);
  if (end - start > maxNumberBytes || !isJsonNumber(source, from, end)) {
    writeText(out, source, start, end);
    return;
  }
  const target = out.bytes;
  let to = out.length;
  for (let at = from; at < end; at += 1) target[to++] = source[at] as number;
  out.length = to;
}

function writeDigits(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  writeText(out, source, skipZeros(source, start, end), end);
}

/** Returns the start of the number that JSON allows: its only leading zero is the sole digit before the point. */
export function skipZeros(source: Buffer, start: number, end: number): number {
  let from = start;
  while (source[from] === zero && from + 1 < end && isDigit(source[from + 1] as number)) from += 1;
  return from;
}

/** Writes a number of up to 64 bits; longer values are written as bytes. */
function writeBit(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  if (end - start > maxBitBytes) {
    writeBase64(out, source, start, end);
    return;
  }
  const digits = Buffer.from(bitDigits(source, start, end));
  writeText(out, digits, 0, digits.length);
}

/** The decimal digits of a BIT, at most `maxBitBytes` bytes. */
export function bitDigits(source: Buffer, start: number, end: number): string {
  let value = 0n;
  for (let at = start; at < end; at += 1) value = (value << 8n) | BigInt(source[at] as number);
  return value.toString();
}

/** Writes JSON as a value with all its digits. Text that is not valid JSON becomes a string. */
function writeJson(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  const compact = compactJson(source.subarray(start, end));
  if (compact === null) writeText(out, source, start, end);
  else writeBytes(out, compact);
}

/** Converts a cell, then writes the result as its own kind. */
function writeForeign(
  out: ReplyWriter,
  conversion: Conversion,
  source: Buffer,
  start: number,
  end: number,
): void {
  const bytes = source.subarray(start, end);
  if ('bits' in conversion) {
    const value = readBits(bytes, conversion);
    if (value === null) writeBit(out, source, start, end);
    else writeBytes(out, Buffer.from(`"${value}"`));
    return;
  }
  const text = toUtf8(bytes, conversion);
  writeCell(out, conversion.kind, null, text, 0, text.length);
}

/** Text of another character set as UTF-8. */
export function toUtf8(cell: Buffer, { charset, maybeAscii }: CharsetConversion): Buffer {
  return maybeAscii && !cell.includes(0) ? cell : Buffer.from(decode(cell, charset));
}

/** The first byte of a cell that is NULL. */
export const nullMarker = 0xfb;

/** If such a row were written, the reply would have cells that the database does not hold. */
export const rowLengthFault = 'a row is not as long as its cells';

/** The number of bytes that encode the length of the cell at `position`. */
export function lengthBytes(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return 1;
  return first === 0xfc ? 3 : first === 0xfd ? 4 : 9;
}

/** The length of the cell at `position`, without the bytes that encode it. */
export function cellLength(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return first;
  if (first === 0xfc) return source.readUInt16LE(position + 1);
  if (first === 0xfd) return source.readUIntLE(position + 1, 3);
  return Number(source.readBigUInt64LE(position + 1));
}

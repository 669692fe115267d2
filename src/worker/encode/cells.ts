// The cells of a row packet (MySQL's text protocol): where they are, and each as JSON, from bytes to bytes. Hot for numbers and NULL: nothing is allocated for them.
import { decode } from '../../shared/mysql/charsets.ts';
import { readBits } from '../../shared/mysql/doubtful-bits.ts';
import { type CellKind, type CharsetConversion, type Conversion, cellKinds } from './columns.ts';
import { compactJson, isDigit, isJsonNumber } from './json.ts';
import { writeBase64, writeBytes, writeText } from './text.ts';
import type { ReplyWriter } from './writer.ts';

const zero = 0x30;
/** No type's text is longer: DOUBLE(255,30) has 255 digits, point and sign; 1e308 has 309. */
const longestNumber = 1024;
/** BIT(64) is the longest. */
export const longestBit = 8;

/** Writes `null`, for which there must be room; returns where it ends in `target`. */
export function writeNull(target: Buffer, at: number): number {
  target[at] = 0x6e;
  target[at + 1] = 0x75;
  target[at + 2] = 0x6c;
  target[at + 3] = 0x6c;
  return at + 4;
}

/**
 * Writes a cell of any kind, its room included.
 * @param conversion of what comes in another character set; null for all other kinds
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
      out.reserve(longestNumber);
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
 * MySQL's digits, without ZEROFILL's zeros. What is no number to JSON becomes a string, so that nothing that a server
 * sends breaks the document (some of the protocol's servers send `inf`, `-inf` and `nan`); so does what is longer
 * than any number. The room must have been reserved.
 */
function writeNumber(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  const from = skipZeros(source, start, end);
  if (end - start > longestNumber || !isJsonNumber(source, from, end)) {
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

/** Where the number begins that JSON allows: a leading zero only as the sole digit before the point. */
export function skipZeros(source: Buffer, start: number, end: number): number {
  let from = start;
  while (source[from] === zero && from + 1 < end && isDigit(source[from + 1] as number)) from += 1;
  return from;
}

/** A number of up to 64 bits; what is longer is none, and shown as bytes. */
function writeBit(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  if (end - start > longestBit) {
    writeBase64(out, source, start, end);
    return;
  }
  const digits = Buffer.from(bitDigits(source, start, end));
  writeText(out, digits, 0, digits.length);
}

/** The decimal digits of a BIT, at most `longestBit` bytes. */
export function bitDigits(source: Buffer, start: number, end: number): string {
  let value = 0n;
  for (let at = start; at < end; at += 1) value = (value << 8n) | BigInt(source[at] as number);
  return value.toString();
}

/** JSON as a value, its digits kept; what only calls itself JSON, as a string. */
function writeJson(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  const compact = compactJson(source.subarray(start, end));
  if (compact === null) writeText(out, source, start, end);
  else writeBytes(out, compact);
}

/** Converts first, then writes what that gives as the kind that it is. */
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

/** Text that comes in another character set. */
export function toUtf8(cell: Buffer, { charset, maybeAscii }: CharsetConversion): Buffer {
  return maybeAscii && !cell.includes(0) ? cell : Buffer.from(decode(cell, charset));
}

/** The first byte of a cell that is NULL. */
export const nullMarker = 0xfb;

/** A document made of such a row would show cells that the database does not hold. */
export const rowLengthFault = 'a row is not as long as its cells';

/** How many bytes tell the length of the cell that begins at `position`. */
export function lengthBytes(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return 1;
  return first === 0xfc ? 3 : first === 0xfd ? 4 : 9;
}

/** How long the cell that begins at `position` is, without the bytes that tell it. */
export function cellLength(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return first;
  if (first === 0xfc) return source.readUInt16LE(position + 1);
  if (first === 0xfd) return source.readUIntLE(position + 1, 3);
  return Number(source.readBigUInt64LE(position + 1));
}

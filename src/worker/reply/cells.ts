// One row of MySQL's text protocol as a JSON array, from bytes to bytes. Hot: nothing is allocated here
// for ordinary cells. Must not know sockets, nor the shape of the reply around a row.
import iconv from 'iconv-lite';
import { foreignEncoding } from '../mysql/charsets.ts';
import type { Column } from '../mysql/packets.ts';
import { writeBase64 } from './base64.ts';
import { slackBytes } from './buffers.ts';
import { type CellKind, cellKind, cellKinds } from './column-kinds.ts';
import { escapeInto, maxExpansion, writeText } from './text.ts';
import type { ReplyWriter } from './writer.ts';

const nullMarker = 0xfb;
const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
/** No type's text is longer: DOUBLE(255,30) has 255 digits, point and sign; 1e308 has 309. */
const longestNumber = 1024;
/** Comma, quotes and the letters of null that a cell may need beyond the bytes on the wire. */
const cellOverhead = 8;
/** A document made of such a row would show cells that the database does not hold. */
const rowLengthFault = 'a row is not as long as its cells';

/** What is known about a result set's columns before its first row. */
export type RowPlan = {
  readonly kinds: Uint8Array;
  /** For each column of foreign text its encoding, else null. */
  readonly encodings: readonly (string | null)[];
};

/** Decides for each column how its cells are written. */
export function planRow(columns: readonly Column[], exactAsStrings: boolean): RowPlan {
  return {
    kinds: Uint8Array.from(columns, (column) => cellKind(column, exactAsStrings)),
    encodings: columns.map((column) => foreignEncoding(column.charset)),
  };
}

/** Writes a row packet as `[cell,…]`. @throws RangeError when the packet does not hold what the plan says */
export function writeRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const columnCount = plan.kinds.length;
  const worstCase = (end - start) * maxExpansion + columnCount * cellOverhead + 2;
  if (worstCase <= slackBytes) {
    out.reserve(worstCase);
    writeShortRow(out, plan, source, start, end);
  } else {
    writeLongRow(out, plan, source, start, end);
  }
}

/**
 * All the room is reserved, and no cell is longer than two length bytes can say. What most cells are made
 * of is written here without a call, with the positions in local variables.
 */
function writeShortRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const { kinds } = plan;
  const columnCount = kinds.length;
  let target = out.bytes;
  let to = out.length;
  let position = start;
  for (let index = 0; index < columnCount; index += 1) {
    target[to++] = index === 0 ? 0x5b : comma;
    let length = source[position++] as number;
    if (length === nullMarker) {
      to = writeNull(target, to);
      continue;
    }
    if (length > nullMarker) {
      length = (source[position] as number) | ((source[position + 1] as number) << 8);
      position += 2;
    }
    const cellEnd = position + length;
    if (cellEnd > end) throw new RangeError(rowLengthFault);
    const kind = kinds[index] as CellKind;
    if (kind === cellKinds.number && isPlainNumber(source, position, cellEnd)) {
      while (position < cellEnd) target[to++] = source[position++] as number;
    } else if (kind === cellKinds.text) {
      target[to++] = quote;
      to = escapeInto(target, to, source, position, cellEnd);
      target[to++] = quote;
      position = cellEnd;
    } else {
      out.length = to;
      writeRareCell(out, plan, index, source, position, cellEnd);
      target = out.bytes;
      to = out.length;
      position = cellEnd;
    }
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  target[to++] = 0x5d;
  out.length = to;
}

/** Whether JSON takes the digits as they are: no zeros of ZEROFILL before them, and a digit after the sign. */
function isPlainNumber(source: Buffer, start: number, end: number): boolean {
  const first = source[start] as number;
  return first > zero && first <= nine && start < end;
}

/** Any row: room is asked for cell by cell, and long cells are written piece by piece. */
function writeLongRow(
  out: ReplyWriter,
  plan: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  const { kinds } = plan;
  let position = start;
  for (let index = 0; index < kinds.length; index += 1) {
    out.reserve(cellOverhead);
    out.bytes[out.length++] = index === 0 ? 0x5b : comma;
    if (source[position] === nullMarker) {
      out.length = writeNull(out.bytes, out.length);
      position += 1;
      continue;
    }
    const cellStart = position + lengthBytes(source, position);
    const cellEnd = cellStart + cellLength(source, position);
    if (cellEnd > end) throw new RangeError(rowLengthFault);
    if (kinds[index] === cellKinds.text) writeText(out, source, cellStart, cellEnd);
    else writeRareCell(out, plan, index, source, cellStart, cellEnd);
    position = cellEnd;
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  out.reserve(1);
  out.bytes[out.length++] = 0x5d;
}

function lengthBytes(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return 1;
  return first === 0xfc ? 3 : first === 0xfd ? 4 : 9;
}

function cellLength(source: Buffer, position: number): number {
  const first = source[position] as number;
  if (first < nullMarker) return first;
  if (first === 0xfc) return source.readUInt16LE(position + 1);
  if (first === 0xfd) return source.readUIntLE(position + 1, 3);
  return Number(source.readBigUInt64LE(position + 1));
}

function writeNull(target: Buffer, at: number): number {
  target[at] = 0x6e;
  target[at + 1] = 0x75;
  target[at + 2] = 0x6c;
  target[at + 3] = 0x6c;
  return at + 4;
}

function writeRareCell(
  out: ReplyWriter,
  plan: RowPlan,
  index: number,
  source: Buffer,
  start: number,
  end: number,
): void {
  switch (plan.kinds[index] as CellKind) {
    case cellKinds.number:
      out.reserve(longestNumber);
      writeNumber(out, source, start, end);
      return;
    case cellKinds.digits:
      writeDigits(out, source, start, end);
      return;
    case cellKinds.binary:
      writeBase64(out, source, start, end);
      return;
    case cellKinds.bit:
      writeBit(out, source, start, end);
      return;
    default:
      writeForeignText(out, plan.encodings[index] ?? 'utf8', source, start, end);
  }
}

/**
 * MySQL's digits, without ZEROFILL's zeros. What is no number to JSON (other servers of the protocol
 * send `inf`, `-inf` and `nan`) becomes a string, so that the document stays one; so does what is longer
 * than any number. The room must have been reserved.
 */
function writeNumber(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  const digit = source[start] === minus ? start + 1 : start;
  if (digit >= end || !isDigit(source[digit] as number) || end - start > longestNumber) {
    writeText(out, source, start, end);
    return;
  }
  const target = out.bytes;
  let to = out.length;
  for (let from = skipZeros(source, start, end); from < end; from += 1) {
    target[to++] = source[from] as number;
  }
  out.length = to;
}

function writeDigits(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  writeText(out, source, skipZeros(source, start, end), end);
}

/** Where the number begins that JSON allows: a leading zero only as the sole digit before the point. */
function skipZeros(source: Buffer, start: number, end: number): number {
  let from = start;
  while (source[from] === zero && from + 1 < end && isDigit(source[from + 1] as number)) from += 1;
  return from;
}

function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}

function writeBit(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  let value = 0n;
  for (let at = start; at < end; at += 1) value = (value << 8n) | BigInt(source[at] as number);
  const digits = Buffer.from(value.toString());
  writeText(out, digits, 0, digits.length);
}

function writeForeignText(
  out: ReplyWriter,
  encoding: string,
  source: Buffer,
  start: number,
  end: number,
): void {
  const text = Buffer.from(iconv.decode(source.subarray(start, end), encoding));
  writeText(out, text, 0, text.length);
}

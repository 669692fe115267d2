// Rows in the PlanetScale protocol: the lengths of the cells, then the bytes of all cells as one base64 text. Hot.
import { bitBytes, readBits } from '../../shared/mysql/doubtful-bits.ts';
import { cellLength, lengthBytes, nullMarker, rowLengthFault, toUtf8 } from './cells.ts';
import type { Conversion } from './columns.ts';
import type { RowPlan } from './rows.ts';
import { writeAscii } from './text.ts';
import type { ReplyWriter } from './writer.ts';

/** RFC 4648 section 4. */
const alphabet = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/');
const padding = 0x3d;
const quote = 0x22;
const comma = 0x2c;
const digitZero = 0x30;
/** Bytes of a cell that are written per reservation. Three become four. */
const pieceBytes = 6144;
/** Room for a comma, two quotes and the digits of a length; room for the base64 of a piece. */
const lengthRoom = 20;
const pieceRoom = (pieceBytes / 3) * 4 + 8;

/** Bytes of a row without cells, and the most that a byte of a row packet grows: a BIT(64) that came as one digit takes two bytes, and becomes eleven of base64 and `"8",`. */
export const driverRowFrame = 40;
export const driverRowGrowth = 8;

/** Writes a row packet as `{"lengths":["2","-1"],"values":"…"}`. @throws RangeError if the packet does not match the plan */
export function writeDriverRow(
  out: ReplyWriter,
  { kinds, conversions, isForeign }: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  if (isForeign) {
    const packet = convertRow(conversions, source, start, end);
    writePacket(out, kinds.length, packet, 0, packet.length);
  } else {
    writePacket(out, kinds.length, source, start, end);
  }
}

function writePacket(
  out: ReplyWriter,
  columnCount: number,
  source: Buffer,
  start: number,
  end: number,
): void {
  writeAscii(out, '{"lengths":[');
  writeLengths(out, columnCount, source, start, end);
  writeAscii(out, '],"values":"');
  writeCells(out, columnCount, source, start);
  writeAscii(out, '"}');
}

function writeLengths(
  out: ReplyWriter,
  columnCount: number,
  source: Buffer,
  start: number,
  end: number,
): void {
  let position = start;
  for (let index = 0; index < columnCount; index += 1) {
    out.reserve(lengthRoom);
    const target = out.bytes;
    let to = out.length;
    if (index > 0) target[to++] = comma;
    target[to++] = quote;
    if (source[position] === nullMarker) {
      target[to++] = 0x2d;
      target[to++] = 0x31;
      position += 1;
    } else {
      const length = cellLength(source, position);
      position += lengthBytes(source, position) + length;
      to = writeCount(target, to, length);
    }
    target[to++] = quote;
    out.length = to;
    if (position > end) throw new RangeError(rowLengthFault);
  }
  if (position !== end) throw new RangeError(rowLengthFault);
}

function writeCount(target: Buffer, at: number, count: number): number {
  let digits = 1;
  for (let rest = count; rest >= 10; rest = Math.floor(rest / 10)) digits += 1;
  let rest = count;
  for (let to = at + digits - 1; to >= at; to -= 1) {
    target[to] = digitZero + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return at + digits;
}

/** The cells are one text of base64: up to two bytes of a cell wait for those of the next. */
function writeCells(out: ReplyWriter, columnCount: number, source: Buffer, start: number): void {
  let position = start;
  let waiting = 0;
  let waitingBytes = 0;
  for (let index = 0; index < columnCount; index += 1) {
    if (source[position] === nullMarker) {
      position += 1;
      continue;
    }
    const length = cellLength(source, position);
    position += lengthBytes(source, position);
    const cellEnd = position + length;
    while (position < cellEnd) {
      const pieceEnd = Math.min(position + pieceBytes, cellEnd);
      out.reserve(pieceRoom);
      const target = out.bytes;
      let to = out.length;
      for (; position < pieceEnd; position += 1) {
        waiting = (waiting << 8) | (source[position] as number);
        waitingBytes += 1;
        if (waitingBytes < 3) continue;
        target[to++] = alphabet[waiting >> 18] as number;
        target[to++] = alphabet[(waiting >> 12) & 63] as number;
        target[to++] = alphabet[(waiting >> 6) & 63] as number;
        target[to++] = alphabet[waiting & 63] as number;
        waiting = 0;
        waitingBytes = 0;
      }
      out.length = to;
    }
  }
  if (waitingBytes > 0) writeLast(out, waiting, waitingBytes);
}

function writeLast(out: ReplyWriter, waiting: number, waitingBytes: number): void {
  out.reserve(4);
  const target = out.bytes;
  const bits = waiting << (waitingBytes === 1 ? 16 : 8);
  target[out.length++] = alphabet[bits >> 18] as number;
  target[out.length++] = alphabet[(bits >> 12) & 63] as number;
  target[out.length++] = waitingBytes === 1 ? padding : (alphabet[(bits >> 6) & 63] as number);
  target[out.length++] = padding;
}

/** Makes the row packet that a session in UTF-8 would get. Only a procedure that changes the character set makes this necessary. */
function convertRow(
  conversions: readonly (Conversion | null)[],
  source: Buffer,
  start: number,
  end: number,
): Buffer {
  const parts: Buffer[] = [];
  let position = start;
  for (const conversion of conversions) {
    if (source[position] === nullMarker) {
      parts.push(Buffer.of(nullMarker));
      position += 1;
      continue;
    }
    const from = position + lengthBytes(source, position);
    position = from + cellLength(source, position);
    if (position > end) throw new RangeError(rowLengthFault);
    const cell = convertCell(conversion, source.subarray(from, position));
    parts.push(longestLength(cell.length), cell);
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  return Buffer.concat(parts);
}

function convertCell(conversion: Conversion | null, cell: Buffer): Buffer {
  if (conversion === null) return cell;
  if ('bits' in conversion) {
    const value = readBits(cell, conversion);
    return value === null ? cell : bitBytes(value, conversion.bits);
  }
  return toUtf8(cell, conversion);
}

function longestLength(length: number): Buffer {
  const bytes = Buffer.alloc(9, 0xfe);
  bytes.writeBigUInt64LE(BigInt(length), 1);
  return bytes;
}

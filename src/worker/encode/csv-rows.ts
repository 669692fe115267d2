// Rows of MySQL's text protocol as records of CSV (RFC 4180), from bytes to bytes: those that the row module does not write.
import { isUtf8 } from 'node:buffer';
import { readBits } from '../../shared/mysql/doubtful-bits.ts';
import {
  bitDigits,
  cellLength,
  lengthBytes,
  maxBitBytes,
  nullMarker,
  rowLengthFault,
  skipZeros,
  toUtf8,
} from './cells.ts';
import { type CellKind, cellKinds } from './columns.ts';
import type { RowPlan } from './rows.ts';
import { writeAscii, writeBytes } from './text.ts';
import type { ReplyWriter } from './writer.ts';

const quote = 0x22;
const comma = 0x2c;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
/** Bytes of a quoted field that are written per reservation. Each becomes at most two. */
const pieceBytes = 4096;

/** Names as a record: the header. */
export function csvRecord(names: readonly string[]): Buffer {
  return Buffer.from(`${names.map(csvField).join(',')}\r\n`);
}

function csvField(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Writes a row packet as a record with its line end. @throws RangeError if the packet does not match the plan */
export function writeRecord(
  out: ReplyWriter,
  { kinds, conversions }: RowPlan,
  source: Buffer,
  start: number,
  end: number,
): void {
  let position = start;
  for (let index = 0; index < kinds.length; index += 1) {
    if (index > 0) writeAscii(out, ',');
    if (source[position] === nullMarker) {
      position += 1;
      continue;
    }
    const from = position + lengthBytes(source, position);
    position = from + cellLength(source, position);
    if (position > end) throw new RangeError(rowLengthFault);
    const conversion = conversions[index] ?? null;
    if (conversion === null) {
      writeCell(out, kinds[index] as CellKind, source.subarray(from, position));
      continue;
    }
    const cell = source.subarray(from, position);
    if ('bits' in conversion) {
      const value = readBits(cell, conversion);
      if (value === null) writeCell(out, cellKinds.bit, cell);
      else writeAscii(out, String(value));
      continue;
    }
    writeCell(out, conversion.kind, toUtf8(cell, conversion));
  }
  if (position !== end) throw new RangeError(rowLengthFault);
  writeAscii(out, '\r\n');
}

/** The same values as in JSON. */
function writeCell(out: ReplyWriter, kind: CellKind, cell: Buffer): void {
  switch (kind) {
    case cellKinds.number:
    case cellKinds.digits:
      writeField(out, cell.subarray(skipZeros(cell, 0, cell.length)));
      return;
    case cellKinds.binary:
      writeBinary(out, cell);
      return;
    case cellKinds.bit:
      if (cell.length > maxBitBytes) writeBinary(out, cell);
      else writeAscii(out, bitDigits(cell, 0, cell.length));
      return;
    case cellKinds.text:
    case cellKinds.json:
    case cellKinds.foreign:
      writeField(out, cell);
      return;
    default:
      kind satisfies never;
  }
}

function writeBinary(out: ReplyWriter, cell: Buffer): void {
  if (cell.length === 0) writeAscii(out, '""');
  else writeBytes(out, Buffer.from(cell.toString('base64'), 'latin1'));
}

/** Writes text, quoted if necessary. Empty text is quoted, since an empty field is NULL. */
function writeField(out: ReplyWriter, cell: Buffer): void {
  const text = isUtf8(cell) ? cell : Buffer.from(cell.toString());
  if (mustBeQuoted(text)) writeQuoted(out, text);
  else writeBytes(out, text);
}

function mustBeQuoted(text: Buffer): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at];
    if (byte === quote || byte === comma || byte === lineFeed || byte === carriageReturn) {
      return true;
    }
  }
  return text.length === 0;
}

function writeQuoted(out: ReplyWriter, text: Buffer): void {
  writeAscii(out, '"');
  for (let from = 0; from < text.length; from += pieceBytes) {
    const to = Math.min(from + pieceBytes, text.length);
    out.reserve(2 * (to - from));
    for (let at = from; at < to; at += 1) {
      const byte = text[at] as number;
      out.bytes[out.length++] = byte;
      if (byte === quote) out.bytes[out.length++] = quote;
    }
  }
  writeAscii(out, '"');
}

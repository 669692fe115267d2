// One cell as JSON, from MySQL's text to bytes. Hot for numbers and NULL: nothing is allocated for them.
// Must not know rows, nor which column a cell belongs to.
import iconv from 'iconv-lite';
import { writeBase64 } from './base64.ts';
import { type CellKind, cellKinds } from './column-kinds.ts';
import { writeText } from './text.ts';
import type { ReplyWriter } from './writer.ts';

const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;
/** No type's text is longer: DOUBLE(255,30) has 255 digits, point and sign; 1e308 has 309. */
const longestNumber = 1024;

/** Writes `null`, for which there must be room; returns where it ends in `target`. */
export function writeNull(target: Buffer, at: number): number {
  target[at] = 0x6e;
  target[at + 1] = 0x75;
  target[at + 2] = 0x6c;
  target[at + 3] = 0x6c;
  return at + 4;
}

/** Whether JSON takes the digits as they are: no sign and no zeros of ZEROFILL before them. */
export function isPlainNumber(source: Buffer, start: number, end: number): boolean {
  const first = source[start] as number;
  return first > zero && first <= nine && start < end;
}

/**
 * Writes a cell of any kind, its room included.
 * @param encoding of foreign text; null for all other kinds
 */
export function writeCell(
  out: ReplyWriter,
  kind: CellKind,
  encoding: string | null,
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
    case cellKinds.foreignText:
      writeForeignText(out, encoding ?? 'utf8', source, start, end);
      return;
    case cellKinds.binary:
      writeBase64(out, source, start, end);
      return;
    case cellKinds.bit:
      writeBit(out, source, start, end);
      return;
    default:
      kind satisfies never;
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

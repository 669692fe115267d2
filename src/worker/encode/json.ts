// JSON (RFC 8259): numbers, values that become part of other JSON, strings in ASCII. The functions for numbers are hot: they allocate nothing.
import { isUtf8 } from 'node:buffer';

const [plus, minus, point, zero, nine] = [0x2b, 0x2d, 0x2e, 0x30, 0x39];
const exponent = 0x65;
const toLowerCase = 0x20;

/** Whether the byte is one of 0 to 9. */
export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}

/** Whether the bytes are one number, and nothing else. */
export function isJsonNumber(source: Buffer, start: number, end: number): boolean {
  const whole = source[start] === minus ? start + 1 : start;
  let at = endOfDigits(source, whole, end);
  if (at === whole || (source[whole] === zero && at > whole + 1)) return false;
  if (at < end && source[at] === point) {
    const fraction = at + 1;
    at = endOfDigits(source, fraction, end);
    if (at === fraction) return false;
  }
  if (at < end && ((source[at] as number) | toLowerCase) === exponent) {
    const sign = source[at + 1];
    const power = sign === plus || sign === minus ? at + 2 : at + 1;
    at = endOfDigits(source, power, end);
    if (at <= power) return false;
  }
  return at === end;
}

/**
 * Copies a number without exponent, as most are.
 * @returns its end in `target`; -1 if the bytes are no such number, and the caller ignores what was copied
 */
export function copyPlainNumber(
  target: Buffer,
  to: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  let at = to;
  let from = start;
  if (source[from] === minus) target[at++] = source[from++] as number;
  const whole = from;
  if (source[whole] === zero && whole + 1 < end && source[whole + 1] !== point) return -1;
  let pointAt = -1;
  for (; from < end; from += 1) {
    const byte = source[from] as number;
    if (byte < zero || byte > nine) {
      if (byte !== point || pointAt >= 0 || from === whole) return -1;
      pointAt = from;
    }
    target[at++] = byte;
  }
  return from > whole && from === end && pointAt !== end - 1 ? at : -1;
}

function endOfDigits(source: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isDigit(source[at] as number)) at += 1;
  return at;
}

const [tab, lineFeed, carriageReturn, space, quote, backslash] = [9, 10, 13, 32, 0x22, 0x5c];

/** The same value without white space, with all its digits and its order; null if the bytes are not JSON. */
export function compactJson(bytes: Buffer): Buffer | null {
  if (!isUtf8(bytes)) return null;
  try {
    JSON.parse(bytes.toString());
  } catch {
    return null;
  }
  return withoutSpaces(bytes);
}

function withoutSpaces(bytes: Buffer): Buffer {
  const compact = Buffer.allocUnsafe(bytes.length);
  let to = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === quote) isInString = !isInString;
    if (!isInString && isSpace(byte)) continue;
    compact[to++] = byte;
    if (isInString && byte === backslash) compact[to++] = bytes[++at] as number;
  }
  return compact.subarray(0, to);
}

function isSpace(byte: number): boolean {
  return byte === space || byte === lineFeed || byte === carriageReturn || byte === tab;
}

/** A string as JSON in ASCII: other characters are \\u escapes. */
export function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

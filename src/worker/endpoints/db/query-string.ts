// Decodes the text after `?` by the rules of DBSlayer's clients.
import { isUtf8 } from 'node:buffer';

/**
 * Decodes `+` as space, `%XX` as a byte and `%uXXXX` as a UTF-16 unit (JavaScript's old escape()). Bytes that
 * are not UTF-8 as a whole are Latin-1. Everything else stays as it is. `raw` is the URL's text as
 * Node hands it out, one character a byte. Never throws.
 */
export function decodeQueryString(raw: string): string {
  const bytes = Buffer.allocUnsafe(raw.length);
  let length = 0;
  let seen = 0;
  for (let at = 0; at < raw.length; at += 1) {
    let code = raw.charCodeAt(at);
    if (code === 0x2b) code = 0x20;
    else if (code === 0x25) {
      const byte = hexByte(raw, at + 1);
      if (byte >= 0) {
        code = byte;
        at += 2;
      } else {
        const point = escapedPoint(raw, at);
        if (point >= 0) {
          length += bytes.write(String.fromCodePoint(point), length, 'utf8');
          seen |= 0x80;
          at += point > 0xffff ? 11 : 5;
          continue;
        }
      }
    }
    // A code above 255 cannot have come over the wire; the slow path keeps it.
    seen |= code;
    bytes[length++] = code;
  }
  if (seen < 0x80) return bytes.toString('latin1', 0, length);
  const decoded = bytes.subarray(0, length);
  return seen < 0x100 && isUtf8(decoded) ? decoded.toString('utf8') : decodeLatin1(raw);
}

/** The same with every byte a character of its own; `%u` keeps its meaning beside them. */
function decodeLatin1(raw: string): string {
  return raw
    .replaceAll('+', ' ')
    .replace(/%u([\da-fA-F]{4})|%([\da-fA-F]{2})/g, (whole, unit, byte, at: number) => {
      if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16));
      return isHalf(raw, at) ? whole : String.fromCharCode(Number.parseInt(unit, 16));
    });
}

/** The code point of `%uXXXX`, or of two of them that make a surrogate pair; -1 if there is none. */
function escapedPoint(raw: string, at: number): number {
  const unit = escapedUnit(raw, at);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  const low = escapedUnit(raw, at + 6);
  if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff) return -1;
  return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

/** Whether the `%uXXXX` at `at` is a surrogate without its other half. */
function isHalf(raw: string, at: number): boolean {
  const unit = escapedUnit(raw, at);
  if (unit < 0xd800 || unit > 0xdfff) return false;
  return unit < 0xdc00 ? escapedPoint(raw, at) < 0 : escapedPoint(raw, at - 6) < 0x10000;
}

function escapedUnit(raw: string, at: number): number {
  if (raw.charCodeAt(at) !== 0x25 || raw.charCodeAt(at + 1) !== 0x75) return -1;
  const high = hexByte(raw, at + 2);
  const low = hexByte(raw, at + 4);
  return high < 0 || low < 0 ? -1 : (high << 8) | low;
}

function hexByte(raw: string, at: number): number {
  const high = hexDigit(raw.charCodeAt(at));
  const low = hexDigit(raw.charCodeAt(at + 1));
  return high < 0 || low < 0 ? -1 : (high << 4) | low;
}

/** The value of a hex digit; -1 for anything else, also for NaN after the end. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

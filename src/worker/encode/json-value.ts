// JSON that is put into other JSON: only if it is some, and without the spaces and line ends between its parts.
// Must not know where it comes from.
import { isUtf8 } from 'node:buffer';

const [tab, lineFeed, carriageReturn, space, quote, backslash] = [9, 10, 13, 32, 0x22, 0x5c];

/** The same value in fewer bytes, digits and order kept; null when the bytes are no JSON text (RFC 8259). */
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

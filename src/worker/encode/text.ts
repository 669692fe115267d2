// UTF-8 text as JSON strings, from bytes to bytes. Hot: no closure, object or string per call.
// Must not know where the bytes come from.
import { beyondAscii, characterLength, cutBefore } from './utf8.ts';
import type { ReplyWriter } from './writer.ts';

const quote = 0x22;
const backslash = 0x5c;
/** Each byte becomes six at most: \u00XX. */
export const mostExpansion = 6;
/** How much of a long text is written between two looks at the room left. */
const pieceBytes = 2048;
/** From this length on, looking for a clean run and copying it at once beats copying byte by byte. */
const bulkBytes = 64;

/** U+FFFD, which stands for bytes that are no UTF-8. */
const replacement = [0xef, 0xbf, 0xbd] as const;

const [asItIs, asCode, ofCharacter] = [0, 1, 2] as const;
/** For each byte: copied as it is, written as \u00XX, one of a character's, else the letter after the backslash. */
const escapes = new Uint8Array(256);
escapes.fill(asCode, 0, 0x20);
escapes.fill(ofCharacter, beyondAscii);
for (const [byte, letter] of [
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [quote, '"'],
  [backslash, '\\'],
] as const) {
  escapes[byte] = letter.charCodeAt(0);
}
const hexDigits = Buffer.from('0123456789abcdef');

/**
 * Writes text without quotes, escaped as RFC 8259 section 7 asks, and U+FFFD for what is no UTF-8; returns where it
 * ends in `target`. There must be room: `mostExpansion` bytes for each byte of the text.
 */
export function escapeInto(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  if (end - start >= bulkBytes) return escapeRuns(target, at, source, start, end);
  let to = at;
  for (let from = start; from < end; from += 1) {
    const byte = source[from] as number;
    if (escapes[byte] !== asItIs) return escapeBytes(target, to, source, from, end);
    target[to++] = byte;
  }
  return to;
}

function escapeBytes(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  let to = at;
  let from = start;
  while (from < end) {
    const byte = source[from] as number;
    const letter = escapes[byte] as number;
    if (letter === asItIs) {
      target[to++] = byte;
      from += 1;
    } else if (letter !== ofCharacter) {
      to = writeEscape(target, to, byte);
      from += 1;
    } else {
      const length = characterLength(source, from, end);
      if (length < 0) {
        to = writeReplacement(target, to);
        from -= length;
      } else {
        for (const next = from + length; from < next; ) target[to++] = source[from++] as number;
      }
    }
  }
  return to;
}

/** Runs of clean bytes are copied at once when they are long. */
function escapeRuns(
  target: Buffer,
  at: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  let to = at;
  let from = start;
  while (from < end) {
    const clean = endOfClean(source, from, end);
    if (clean - from >= bulkBytes) {
      source.copy(target, to, from, clean);
      to += clean - from;
    } else {
      while (from < clean) target[to++] = source[from++] as number;
    }
    from = clean;
    if (from >= end) break;
    const byte = source[from] as number;
    if (byte < beyondAscii) {
      to = writeEscape(target, to, byte);
      from += 1;
    } else {
      to = writeReplacement(target, to);
      from -= characterLength(source, from, end);
    }
  }
  return to;
}

/** Where something stands that cannot be copied. */
function endOfClean(source: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const letter = escapes[source[at] as number];
    if (letter === asItIs) {
      at += 1;
    } else {
      const length = letter === ofCharacter ? characterLength(source, at, end) : 0;
      if (length <= 0) return at;
      at += length;
    }
  }
  return end;
}

function writeEscape(target: Buffer, at: number, byte: number): number {
  const letter = escapes[byte] as number;
  target[at] = backslash;
  if (letter !== asCode) {
    target[at + 1] = letter;
    return at + 2;
  }
  target[at + 1] = 0x75;
  target[at + 2] = 0x30;
  target[at + 3] = 0x30;
  target[at + 4] = hexDigits[byte >> 4] as number;
  target[at + 5] = hexDigits[byte & 15] as number;
  return at + 6;
}

function writeReplacement(target: Buffer, at: number): number {
  [target[at], target[at + 1], target[at + 2]] = replacement;
  return at + 3;
}

/** Writes text of any length as a JSON string, quotes included. */
export function writeText(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  out.reserve(1);
  out.bytes[out.length++] = quote;
  for (let from = start, to = start; from < end; from = to) {
    to = cutBefore(source, from, from + pieceBytes, end);
    out.reserve((to - from) * mostExpansion);
    out.length = escapeInto(out.bytes, out.length, source, from, to);
  }
  out.reserve(1);
  out.bytes[out.length++] = quote;
}

/** Writes ASCII as it stands, at most `slackBytes`: what frames a result is so short that a native call costs more. */
export function writeAscii(out: ReplyWriter, value: string): void {
  out.reserve(value.length);
  const target = out.bytes;
  let to = out.length;
  for (let at = 0; at < value.length; at += 1) target[to++] = value.charCodeAt(at);
  out.length = to;
}

/** Writes bytes of any length as they stand. */
export function writeBytes(out: ReplyWriter, source: Buffer): void {
  for (let from = 0; from < source.length; from += pieceBytes) {
    const to = Math.min(from + pieceBytes, source.length);
    out.reserve(to - from);
    out.length += source.copy(out.bytes, out.length, from, to);
  }
}

// UTF-8 text as JSON strings, from bytes to bytes. Hot: no closure, object or string per call.
// Must not know where the bytes come from.
import type { ReplyWriter } from './writer.ts';

const quote = 0x22;
const backslash = 0x5c;
/** Each byte becomes six at most: \u00XX. */
export const mostExpansion = 6;
/** How much of a long text is written between two looks at the room left. */
const pieceBytes = 2048;
/** From this length on, looking for a clean run and copying it at once beats copying byte by byte. */
const bulkBytes = 64;

/**
 * U+D800 to U+DFFF, halves of surrogate pairs, would begin with this byte: no characters, and not allowed
 * in UTF-8 (RFC 3629 section 3), but MariaDB lets them into its utf8mb4. U+D000 to U+D7FF begin so too.
 */
const leadOfHalf = 0xed;
/** U+FFFD, which every reader understands, in as many bytes as a half takes. */
const replacement = [0xef, 0xbf, 0xbd] as const;

/** For each byte: 0 copied as it is, 1 written as \u00XX, 2 to be looked at, else the letter after the backslash. */
const escapes = new Uint8Array(256);
escapes[leadOfHalf] = 2;
escapes.fill(1, 0, 0x20);
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
 * Writes text without quotes, escaped as RFC 8259 section 7 asks; returns where it ends in `target`.
 * There must be room: `mostExpansion` bytes for each byte of the text.
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
    if (escapes[byte] !== 0) return escapeBytes(target, to, source, from, end);
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
  for (let from = start; from < end; from += 1) {
    const byte = source[from] as number;
    const letter = escapes[byte] as number;
    if (letter === 0) {
      target[to++] = byte;
    } else {
      to = writeEscape(target, to, source, from, end);
      if (letter === 2 && target[to - 1] !== byte) from += 2;
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
    let clean = from;
    while (clean < end && escapes[source[clean] as number] === 0) clean += 1;
    if (clean - from >= bulkBytes) {
      source.copy(target, to, from, clean);
      to += clean - from;
    } else {
      while (from < clean) target[to++] = source[from++] as number;
    }
    from = clean;
    if (from < end) {
      to = writeEscape(target, to, source, from, end);
      from += source[from] === leadOfHalf && target[to - 1] !== leadOfHalf ? 3 : 1;
    }
  }
  return to;
}

/** Writes what stands at `from` and cannot be copied blindly; of a half it takes all three bytes. */
function writeEscape(
  target: Buffer,
  at: number,
  source: Buffer,
  from: number,
  end: number,
): number {
  const byte = source[from] as number;
  const letter = escapes[byte] as number;
  if (letter === 2) return writeMaybeHalf(target, at, source, from, end);
  target[at] = backslash;
  if (letter !== 1) {
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

function writeMaybeHalf(
  target: Buffer,
  at: number,
  source: Buffer,
  from: number,
  end: number,
): number {
  if (from + 2 >= end || (source[from + 1] as number) < 0xa0) {
    target[at] = leadOfHalf;
    return at + 1;
  }
  [target[at], target[at + 1], target[at + 2]] = replacement;
  return at + 3;
}

/** Writes text of any length as a JSON string, quotes included. */
export function writeText(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  out.reserve(1);
  out.bytes[out.length++] = quote;
  for (let from = start, to = start; from < end; from = to) {
    to = Math.min(from + pieceBytes, end);
    // A character's bytes stay together.
    if (to < end && source[to - 1] === leadOfHalf) to -= 1;
    else if (to < end && source[to - 2] === leadOfHalf) to -= 2;
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

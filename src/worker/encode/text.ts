// UTF-8 text, and bytes as base64, as JSON strings: from bytes to bytes. Hot: no closure, object or string per call.
import type { ReplyWriter } from './writer.ts';

/** The first byte that is not ASCII: it is part of a character of several bytes. */
const beyondAscii = 0x80;
/** The first bytes of characters of two, three and four bytes, and the last of these. */
const [lead2, lead3, lead4, maxLead] = [0xc2, 0xe0, 0xf0, 0xf4] as const;
const leadOfSurrogates = 0xed;

/**
 * The length of the character at `at`, which begins with a byte beyond ASCII. If the bytes are no character, the result is negative: the
 * number of bytes that one U+FFFD replaces, which is the beginning of a character or one byte (the "maximal subpart" of Unicode 16, 3.9,
 * and of WHATWG's Encoding).
 */
function characterLength(source: Buffer, at: number, end: number): number {
  const first = source[at] as number;
  if (first < lead2 || first > maxLead || !isContinuation(source, at + 1, end)) return -1;
  if (first < lead3) return 2;
  if (!mayFollow(first, source[at + 1] as number)) return -1;
  if (!isContinuation(source, at + 2, end)) return -2;
  if (first < lead4) return 3;
  return isContinuation(source, at + 3, end) ? 4 : -3;
}

function isContinuation(source: Buffer, at: number, end: number): boolean {
  return at < end && ((source[at] as number) & 0xc0) === 0x80;
}

/** Excludes overlong forms, halves of surrogate pairs, and everything beyond U+10FFFF (Unicode 16, table 3-7). */
function mayFollow(first: number, second: number): boolean {
  if (first === lead3) return second >= 0xa0;
  if (first === leadOfSurrogates) return second < 0xa0;
  if (first === lead4) return second >= 0x90;
  return first !== maxLead || second < 0x90;
}

/** The last position up to `at` at which the text up to `end` can be cut between characters. */
function cutBefore(source: Buffer, start: number, at: number, end: number): number {
  if (at >= end) return end;
  for (let cut = at; cut > start && cut > at - 4; cut -= 1) {
    if (!isContinuation(source, cut, end)) return cut;
  }
  // More continuations than a character has: each counts alone.
  return at;
}

const quote = 0x22;
const backslash = 0x5c;
/** The most that one byte grows: \u00XX. */
export const maxExpansion = 6;
/** Bytes of a long text that are written per reservation. */
const pieceBytes = 2048;
/** From this length on, finding a clean run and copying it at once is faster than copying byte by byte. */
const bulkBytes = 64;

/** U+FFFD, which replaces bytes that are not UTF-8. */
const replacement = [0xef, 0xbf, 0xbd] as const;

const [asItIs, asCode, ofCharacter] = [0, 1, 2] as const;
/** For each byte: copied, written as \u00XX, part of a character, or else the letter after the backslash. */
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
 * Writes text without quotes, escaped as RFC 8259 section 7 requires, with U+FFFD for bytes that are not UTF-8. Returns the end in
 * `target`. The caller has made room: `maxExpansion` bytes for each byte of the text.
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

/** Copies long runs of clean bytes at once. */
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

/** The position of the first byte that cannot be copied. */
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
    out.reserve((to - from) * maxExpansion);
    out.length = escapeInto(out.bytes, out.length, source, from, to);
  }
  out.reserve(1);
  out.bytes[out.length++] = quote;
}

/** Writes ASCII unchanged, at most `slackBytes`. The texts around a result are so short that a native call costs more than the loop. */
export function writeAscii(out: ReplyWriter, value: string): void {
  out.reserve(value.length);
  const target = out.bytes;
  let to = out.length;
  for (let at = 0; at < value.length; at += 1) target[to++] = value.charCodeAt(at);
  out.length = to;
}

/** Writes bytes of any length unchanged. */
export function writeBytes(out: ReplyWriter, source: Buffer): void {
  for (let from = 0; from < source.length; from += pieceBytes) {
    const to = Math.min(from + pieceBytes, source.length);
    out.reserve(to - from);
    out.length += source.copy(out.bytes, out.length, from, to);
  }
}

/** A multiple of three, so that pieces join without padding. */
const base64PieceBytes = 6144;

/** Writes bytes of any length as a base64 JSON string, quotes included. */
export function writeBase64(out: ReplyWriter, source: Buffer, start: number, end: number): void {
  out.reserve(1);
  out.bytes[out.length++] = quote;
  for (let from = start; from < end; from += base64PieceBytes) {
    const to = Math.min(from + base64PieceBytes, end);
    out.reserve(Math.ceil((to - from) / 3) * 4);
    out.length += out.bytes.write(source.toString('base64', from, to), out.length, 'latin1');
  }
  out.reserve(1);
  out.bytes[out.length++] = quote;
}

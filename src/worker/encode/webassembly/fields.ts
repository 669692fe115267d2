// Cells as fields of CSV, 16 bytes at a time; the rules are those of `csv-rows.ts` beside this folder.
import { writeBase64, writeBit } from './binary';
import { isUtf8 } from './utf8';

const quote: u32 = 0x22;
const blockBytes: usize = 16;
const blockRoom: usize = 32;

/**
 * Writes text, quoted if necessary. Returns its end, or 0 if there is no room before `room` or the bytes are not UTF-8: JavaScript writes
 * the row then.
 */
@inline
export function writeField(start: usize, end: usize, begin: usize, room: usize): usize {
  if (start == end) {
    store<u16>(begin, 0x2222);
    return begin + 2;
  }
  let at = start;
  let to = begin;
  /** The block of the first byte beyond ASCII; 0: there is none. */
  let beyondAscii: usize = 0;
  while (at < end) {
    if (to + blockRoom > room) return 0;
    const block = v128.load(at);
    v128.store(to, block);
    let special = findSpecial(block);
    let upper = i8x16.bitmask(block);
    const left = end - at;
    if (left < blockBytes) {
      const mask = (1 << <i32>left) - 1;
      special &= mask;
      upper &= mask;
    }
    if (special != 0) return writeQuoted(start, end, begin, room);
    if (upper != 0 && beyondAscii == 0) beyondAscii = at;
    const count = min(left, blockBytes);
    at += count;
    to += count;
  }
  return beyondAscii != 0 && !isUtf8(beyondAscii, end) ? 0 : to;
}

/** Each quote twice, and one on both sides. */
function writeQuoted(start: usize, end: usize, begin: usize, room: usize): usize {
  if (!isUtf8(start, end)) return 0;
  let at = start;
  let to = begin;
  store<u8>(to++, quote);
  while (at < end) {
    if (to + blockRoom > room) return 0;
    const block = v128.load(at);
    v128.store(to, block);
    const left = end - at;
    let quotes = i8x16.bitmask(i8x16.eq(block, i8x16.splat(<i8>quote)));
    if (left < blockBytes) quotes &= (1 << <i32>left) - 1;
    if (quotes == 0) {
      const count = min(left, blockBytes);
      at += count;
      to += count;
      continue;
    }
    const clean: usize = ctz(quotes);
    at += clean + 1;
    to += clean;
    store<u16>(to, 0x2222);
    to += 2;
  }
  store<u8>(to, quote);
  return to + 1;
}

/** One bit for each byte that is a quote, a comma, or ends a line. */
@inline
function findSpecial(block: v128): i32 {
  const quotes = i8x16.eq(block, i8x16.splat(<i8>quote));
  const commas = i8x16.eq(block, i8x16.splat(0x2c));
  const feeds = i8x16.eq(block, i8x16.splat(0x0a));
  const returns = i8x16.eq(block, i8x16.splat(0x0d));
  return i8x16.bitmask(v128.or(v128.or(quotes, commas), v128.or(feeds, returns)));
}

/** Writes base64 without quotes; of nothing an empty string; returns as `writeBase64` does. */
export function writePlainBase64(at: usize, end: usize, to: usize, room: usize): usize {
  const past = writeBase64(at, end, to, room);
  return past == 0 || at == end ? past : withoutQuotes(to, past);
}

/** Writes a number of up to 64 bits without quotes; returns as `writeBit` does. */
export function writePlainBit(at: usize, end: usize, to: usize): usize {
  const past = writeBit(at, end, to);
  return past == 0 ? 0 : withoutQuotes(to, past);
}

function withoutQuotes(to: usize, past: usize): usize {
  memory.copy(to, to + 1, past - to - 2);
  return past - 2;
}

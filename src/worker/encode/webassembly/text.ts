// UTF-8 text as JSON strings, 16 bytes at a time; the rules are those of `../text.ts`.
import { isUtf8 } from './utf8';

const quote: u32 = 0x22;
const backslash: u32 = 0x5c;
const blockBytes: usize = 16;
/** A block, or a part of one and an escape; the quote. */
const blockRoom: usize = 32;
/** For each control character the letter after the backslash, else 0: \u00XX. */
const letters = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0x62, 0x74, 0x6e, 0, 0x66, 0x72, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/**
 * Writes a string, quotes included. Returns its end, or 0 if there is no room before `room` or the bytes are not UTF-8: JavaScript writes
 * the row then.
 */
@inline
export function writeText(at: usize, end: usize, to: usize, room: usize): usize {
  /** The block of the first byte beyond ASCII; 0: there is none. */
  let beyondAscii: usize = 0;
  store<u8>(to++, quote);
  while (at < end) {
    if (to + blockRoom > room) return 0;
    const block = v128.load(at);
    v128.store(to, block);
    const left = end - at;
    let upper = i8x16.bitmask(block);
    let special = findSpecial(block);
    if (left < blockBytes) {
      const mask = (1 << <i32>left) - 1;
      special &= mask;
      upper &= mask;
    }
    if (upper != 0 && beyondAscii == 0) beyondAscii = at;
    if (special == 0) {
      const count = min(left, blockBytes);
      at += count;
      to += count;
      continue;
    }
    const clean: usize = ctz(special);
    at += clean;
    to = writeEscape(<u32>load<u8>(at++), to + clean);
  }
  if (beyondAscii != 0 && !isUtf8(beyondAscii, end)) return 0;
  store<u8>(to, quote);
  return to + 1;
}

/** One bit for each byte that is a control character, a quote or a backslash. */
@inline
function findSpecial(block: v128): i32 {
  const control = i8x16.eq(i8x16.min_u(block, i8x16.splat(0x1f)), block);
  const quotes = i8x16.eq(block, i8x16.splat(<i8>quote));
  const backslashes = i8x16.eq(block, i8x16.splat(<i8>backslash));
  return i8x16.bitmask(v128.or(v128.or(control, quotes), backslashes));
}

function writeEscape(byte: u32, to: usize): usize {
  const letter = byte < 0x20 ? <u32>load<u8>(letters + byte) : byte;
  store<u8>(to, backslash);
  if (letter != 0) {
    store<u8>(to, letter, 1);
    return to + 2;
  }
  const low = byte & 15;
  store<u16>(to, 0x3075, 1);
  store<u8>(to, 0x30, 3);
  store<u8>(to, 0x30 + (byte >> 4), 4);
  store<u8>(to, low < 10 ? 0x30 + low : 0x57 + low, 5);
  return to + 6;
}

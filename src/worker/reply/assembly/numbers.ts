// MySQL's digits as JSON numbers or as strings; the rules are those of `cells.ts` beside this folder.
// Must not know rows.
import { writeText } from './text';

const minus: u32 = 0x2d;
const zero: u32 = 0x30;
const blockBytes: usize = 16;
/** As in cells.ts; longer ones are left to it. */
const longestNumber: usize = 1024;

/** Writes a number; returns where it ends, or 0 when it must be left to JavaScript. */
@inline
export function writeNumber(at: usize, end: usize, to: usize, room: usize): usize {
  const length = end - at;
  if (length - 1 < blockBytes && <u32>load<u8>(at) - 0x31 < 9) {
    v128.store(to, v128.load(at));
    return to + length;
  }
  return writeAnyNumber(at, end, to, room);
}

function writeAnyNumber(at: usize, end: usize, to: usize, room: usize): usize {
  if (end - at > longestNumber || to + (end - at) + blockBytes > room) return 0;
  const digit = at < end && <u32>load<u8>(at) == minus ? at + 1 : at;
  if (digit >= end || !isDigit(load<u8>(digit))) return writeText(at, end, to, room);
  let from = skipZeros(at, end);
  const past = to + (end - from);
  for (; from < end; from += blockBytes, to += blockBytes) v128.store(to, v128.load(from));
  return past;
}

/** Writes a number as a string; returns where it ends, or 0 when there is no room before `room`. */
export function writeDigits(at: usize, end: usize, to: usize, room: usize): usize {
  return writeText(skipZeros(at, end), end, to, room);
}

function skipZeros(at: usize, end: usize): usize {
  while (at + 1 < end && <u32>load<u8>(at) == zero && isDigit(load<u8>(at, 1))) at += 1;
  return at;
}

@inline
function isDigit(byte: u32): bool {
  return byte - zero < 10;
}

// MySQL's digits as JSON numbers or as strings; the rules are those of `cells.ts` beside this folder.
import { writeText } from './text';

const plus: u32 = 0x2b;
const minus: u32 = 0x2d;
const point: u32 = 0x2e;
const zero: u32 = 0x30;
const exponent: u32 = 0x65;
const toLowerCase: u32 = 0x20;
const blockBytes: usize = 16;
/** As in cells.ts; longer ones are left to it. */
const maxNumberBytes: usize = 1024;

/**
 * Writes a number; returns where it ends, or 0 when it must be left to JavaScript. What has no exponent and fits into
 * two blocks, as most numbers, is copied at once.
 */
@inline
export function writeNumber(at: usize, end: usize, to: usize, room: usize): usize {
  const length = end - at;
  if (length - 1 < 2 * blockBytes - 1) {
    const block = v128.load(at);
    v128.store(to, block);
    let others = findOthers(block);
    if (length > blockBytes) {
      const next = v128.load(at, 16);
      v128.store(to, next, 16);
      others |= findOthers(next) << 16;
    }
    others &= (1 << <i32>length) - 1;
    if (isPlainNumber(at, length, others)) return to + length;
  }
  return writeAnyNumber(at, end, to, room);
}

/** One bit for each byte that is no digit. */
@inline
function findOthers(block: v128): i32 {
  return i8x16.bitmask(i8x16.gt_u(i8x16.sub(block, i8x16.splat(<i8>zero)), i8x16.splat(9)));
}

/** Whether the bytes that are no digits are a sign before them and a point between them, and no zero comes first. */
@inline
function isPlainNumber(at: usize, length: usize, others: i32): bool {
  const isNegative = <u32>load<u8>(at) == minus;
  const whole: usize = isNegative ? 1 : 0;
  const rest = isNegative ? others - 1 : others;
  const first = <u32>load<u8>(at + whole);
  if (whole == length) return false;
  if (first - 0x31 >= 9) {
    const isAlone = length == whole + 1 || <u32>load<u8>(at + whole + 1) == point;
    if (first != zero || !isAlone) return false;
  }
  if (rest == 0) return true;
  const place: usize = ctz(rest);
  const isPoint = <u32>load<u8>(at + place) == point;
  return isPoint && (rest & (rest - 1)) == 0 && place > whole && place + 1 < length;
}

function writeAnyNumber(at: usize, end: usize, to: usize, room: usize): usize {
  if (end - at > maxNumberBytes || to + (end - at) + blockBytes > room) return 0;
  let from = skipZeros(at, end);
  if (!isJsonNumber(from, end)) return writeText(at, end, to, room);
  const past = to + (end - from);
  for (; from < end; from += blockBytes, to += blockBytes) v128.store(to, v128.load(from));
  return past;
}

/** As in json.ts. */
function isJsonNumber(start: usize, end: usize): bool {
  const whole = start < end && <u32>load<u8>(start) == minus ? start + 1 : start;
  let at = endOfDigits(whole, end);
  if (at == whole || (<u32>load<u8>(whole) == zero && at > whole + 1)) return false;
  if (at < end && <u32>load<u8>(at) == point) {
    const fraction = at + 1;
    at = endOfDigits(fraction, end);
    if (at == fraction) return false;
  }
  if (at < end && (<u32>load<u8>(at) | toLowerCase) == exponent) {
    const sign = <u32>load<u8>(at, 1);
    const power = sign == plus || sign == minus ? at + 2 : at + 1;
    at = endOfDigits(power, end);
    if (at <= power) return false;
  }
  return at == end;
}

function endOfDigits(at: usize, end: usize): usize {
  while (at < end && isDigit(load<u8>(at))) at += 1;
  return at;
}

/** Writes a number as a string. Returns its end, or 0 if there is no room before `room`. */
export function writeDigits(at: usize, end: usize, to: usize, room: usize): usize {
  return writeText(skipZeros(at, end), end, to, room);
}

/** The start of a number after ZEROFILL's zeros. */
export function skipZeros(at: usize, end: usize): usize {
  while (at + 1 < end && <u32>load<u8>(at) == zero && isDigit(load<u8>(at, 1))) at += 1;
  return at;
}

@inline
function isDigit(byte: u32): bool {
  return byte - zero < 10;
}

// Bytes as base64 and BIT as a decimal number, both as JSON strings.

const quote: u32 = 0x22;
const padding: u32 = 0x3d;
/** BIT(64) is the longest. */
const maxBitBytes: usize = 8;
/** The digits of 2^64-1. */
const maxDigits: usize = 20;
// A-Z a-z 0-9 + /
const alphabet = memory.data<u8>([
  65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90,
  97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122,
  48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 43, 47,
]);

@inline
function sextet(bits: u32, shift: u32): u32 {
  return <u32>load<u8>(alphabet + ((bits >> shift) & 63)) ;
}

/** Writes base64. Returns its end, or 0 if there is no room before `room`. */
export function writeBase64(at: usize, end: usize, to: usize, room: usize): usize {
  if (to + ((end - at + 2) / 3) * 4 + 8 > room) return 0;
  store<u8>(to++, quote);
  for (; end - at >= 3; at += 3, to += 4) {
    const bits = ((<u32>load<u8>(at)) << 16) | ((<u32>load<u8>(at, 1)) << 8) | <u32>load<u8>(at, 2);
    store<u32>(to, sextet(bits, 18) | (sextet(bits, 12) << 8) | (sextet(bits, 6) << 16) | (sextet(bits, 0) << 24));
  }
  if (at < end) {
    const isTwo = end - at == 2;
    const bits = ((<u32>load<u8>(at)) << 16) | (isTwo ? (<u32>load<u8>(at, 1)) << 8 : 0);
    store<u32>(to, sextet(bits, 18) | (sextet(bits, 12) << 8) | ((isTwo ? sextet(bits, 6) : padding) << 16) | (padding << 24));
    to += 4;
  }
  store<u8>(to, quote);
  return to + 1;
}

/** Writes a big-endian number of up to 64 bits. Returns its end, or 0 if it is longer. The caller has made room. */
export function writeBit(at: usize, end: usize, to: usize): usize {
  if (end - at > maxBitBytes) return 0;
  let value: u64 = 0;
  for (; at < end; at += 1) value = (value << 8) | <u64>load<u8>(at);
  let digits: usize = 1;
  for (let rest = value; rest >= 10; rest /= 10) digits += 1;
  store<u8>(to, quote);
  for (let index = digits; index > 0; index -= 1, value /= 10) {
    store<u8>(to + index, 0x30 + <u32>(value % 10));
  }
  store<u8>(to + digits + 1, quote);
  return to + digits + 2;
}

// Whether bytes are UTF-8, 16 at a time.

const blockBytes: usize = 16;

// Keiser and Lemire, "Validating UTF-8 In Less Than One Instruction Per Byte" (2021), as in simdutf: each pair of
// bytes is looked up by three of its half bytes, and an error is a bit that is set in all three answers.
const tooShort: u8 = 1 << 0;
const tooLong: u8 = 1 << 1;
const overlong3: u8 = 1 << 2;
const tooLarge: u8 = 1 << 3;
const surrogate: u8 = 1 << 4;
const overlong2: u8 = 1 << 5;
const tooLarge1000: u8 = 1 << 6;
const overlong4: u8 = 1 << 6;
const twoContinuations: u8 = 1 << 7;
const carry: u8 = tooShort | tooLong | twoContinuations;
const large: u8 = carry | tooLarge | tooLarge1000;

/** By the upper half of the first byte. */
const firstUpper = memory.data<u8>([
  tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong,
  twoContinuations, twoContinuations, twoContinuations, twoContinuations,
  tooShort | overlong2, tooShort, tooShort | overlong3 | surrogate, tooShort | tooLarge | tooLarge1000 | overlong4,
]);
/** By the lower half of the first byte. */
const firstLower = memory.data<u8>([
  carry | overlong3 | overlong2 | overlong4, carry | overlong2, carry, carry,
  carry | tooLarge, large, large, large, large, large, large, large, large, large | surrogate, large, large,
]);
/** By the upper half of the second byte. */
const secondUpper = memory.data<u8>([
  tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort, tooShort,
  tooLong | overlong2 | twoContinuations | overlong3 | tooLarge1000 | overlong4,
  tooLong | overlong2 | twoContinuations | overlong3 | tooLarge,
  tooLong | overlong2 | twoContinuations | surrogate | tooLarge,
  tooLong | overlong2 | twoContinuations | surrogate | tooLarge,
  tooShort, tooShort, tooShort, tooShort,
]);
/** From byte 16-n on a mask that keeps the first n bytes of a block. */
const masks = memory.data<u8>([
  255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/** Whether the bytes are UTF-8. Reads up to 15 bytes beyond `end`. */
export function isUtf8(start: usize, end: usize): bool {
  const byFirstUpper = v128.load(firstUpper);
  const byFirstLower = v128.load(firstLower);
  const bySecondUpper = v128.load(secondUpper);
  const lowerHalf = i8x16.splat(0x0f);
  let before = i8x16.splat(0);
  let errors = i8x16.splat(0);
  let at = start;
  // The last block ends with at least one zero, so that a character that is cut is found there.
  for (; ; at += blockBytes) {
    const left = end - at;
    let block = v128.load(at);
    if (left < blockBytes) block = v128.and(block, v128.load(masks + blockBytes - left));
    const previous = v128.shuffle<u8>(before, block, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
    const pair = v128.and(
      v128.and(
        i8x16.swizzle(byFirstUpper, i8x16.shr_u(previous, 4)),
        i8x16.swizzle(byFirstLower, v128.and(previous, lowerHalf)),
      ),
      i8x16.swizzle(bySecondUpper, i8x16.shr_u(block, 4)),
    );
    const third = v128.shuffle<u8>(before, block, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
    const fourth = v128.shuffle<u8>(before, block, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
    // The upper bit is set if this must be the third byte of three, or the third or fourth of four.
    const due = v128.or(
      i8x16.sub_sat_u(third, i8x16.splat(<i8>(0xe0 - 0x80))),
      i8x16.sub_sat_u(fourth, i8x16.splat(<i8>(0xf0 - 0x80))),
    );
    errors = v128.or(errors, v128.xor(v128.and(due, i8x16.splat(<i8>0x80)), pair));
    before = block;
    if (left < blockBytes) break;
  }
  return !v128.any_true(errors);
}

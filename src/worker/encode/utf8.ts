// Which bytes are a character of UTF-8. Hot: nothing is allocated.
// Must not know what becomes of them.

/** Where ASCII ends: from here on a character has several bytes. */
export const beyondAscii = 0x80;
/** What begins characters of two, three and four bytes. */
const [lead2, lead3, lead4, mostLead] = [0xc2, 0xe0, 0xf0, 0xf4] as const;
const leadOfSurrogates = 0xed;

/**
 * How many bytes the character at `at` has, which begins with a byte beyond ASCII; where there is none, minus the
 * number of bytes that one U+FFFD stands for: the beginning of a character, or one byte (the "maximal subpart" of
 * Unicode 16, 3.9, and of WHATWG's Encoding).
 */
export function characterLength(source: Buffer, at: number, end: number): number {
  const first = source[at] as number;
  if (first < lead2 || first > mostLead || !isContinuation(source, at + 1, end)) return -1;
  if (first < lead3) return 2;
  if (!mayFollow(first, source[at + 1] as number)) return -1;
  if (!isContinuation(source, at + 2, end)) return -2;
  if (first < lead4) return 3;
  return isContinuation(source, at + 3, end) ? 4 : -3;
}

function isContinuation(source: Buffer, at: number, end: number): boolean {
  return at < end && ((source[at] as number) & 0xc0) === 0x80;
}

/** No longer forms than needed, no halves of surrogate pairs, nothing beyond U+10FFFF (Unicode 16, table 3-7). */
function mayFollow(first: number, second: number): boolean {
  if (first === lead3) return second >= 0xa0;
  if (first === leadOfSurrogates) return second < 0xa0;
  if (first === lead4) return second >= 0x90;
  return first !== mostLead || second < 0x90;
}

/** The last place up to `at` where text that goes on to `end` may be cut: no character is on both sides. */
export function cutBefore(source: Buffer, start: number, at: number, end: number): number {
  if (at >= end) return end;
  for (let cut = at; cut > start && cut > at - 4; cut -= 1) {
    if (!isContinuation(source, cut, end)) return cut;
  }
  // More continuations than a character has: each stands for itself.
  return at;
}

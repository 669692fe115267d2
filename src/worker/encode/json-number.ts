// What JSON takes for a number (RFC 8259 section 6). Hot: nothing is allocated.
// Must not know columns.

const [plus, minus, point, zero, nine] = [0x2b, 0x2d, 0x2e, 0x30, 0x39];
const exponent = 0x65;
const toLowerCase = 0x20;

/** Whether the byte is one of 0 to 9. */
export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}

/** Whether all that stands there is one number. */
export function isJsonNumber(source: Buffer, start: number, end: number): boolean {
  const whole = source[start] === minus ? start + 1 : start;
  let at = endOfDigits(source, whole, end);
  if (at === whole || (source[whole] === zero && at > whole + 1)) return false;
  if (at < end && source[at] === point) {
    const fraction = at + 1;
    at = endOfDigits(source, fraction, end);
    if (at === fraction) return false;
  }
  if (at < end && ((source[at] as number) | toLowerCase) === exponent) {
    const sign = source[at + 1];
    const power = sign === plus || sign === minus ? at + 2 : at + 1;
    at = endOfDigits(source, power, end);
    if (at <= power) return false;
  }
  return at === end;
}

/**
 * Copies a number without exponent, as most are.
 * @returns where it ends in `target`, or -1 when it is none: then what was copied counts for nothing
 */
export function copyPlainNumber(
  target: Buffer,
  to: number,
  source: Buffer,
  start: number,
  end: number,
): number {
  let at = to;
  let from = start;
  if (source[from] === minus) target[at++] = source[from++] as number;
  const whole = from;
  if (source[whole] === zero && whole + 1 < end && source[whole + 1] !== point) return -1;
  let pointAt = -1;
  for (; from < end; from += 1) {
    const byte = source[from] as number;
    if (byte < zero || byte > nine) {
      if (byte !== point || pointAt >= 0 || from === whole) return -1;
      pointAt = from;
    }
    target[at++] = byte;
  }
  return from > whole && from === end && pointAt !== end - 1 ? at : -1;
}

function endOfDigits(source: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isDigit(source[at] as number)) at += 1;
  return at;
}

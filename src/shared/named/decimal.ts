// Numbers with all their digits.

/** The value is `unscaled` / 10^`scale`, and `scale` is the smallest from 0 that allows it. */
export type Decimal = { readonly unscaled: bigint; readonly scale: number };

/** Longer texts are no numbers here: MySQL's longest DECIMAL has 65 digits. */
const maxText = 200;
const maxExponent = 100;

/** Parses a number of JSON's grammar; null: it is none, or one far beyond MySQL's. */
export function parseDecimal(text: string): Decimal | null {
  if (text.length > maxText) return null;
  const found = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d{1,4}))?$/.exec(text);
  if (found === null) return null;
  const [, minus = '', whole = '', fraction = '', exponent = '0'] = found;
  if (Math.abs(Number(exponent)) > maxExponent) return null;
  const digits = BigInt(`${whole}${fraction}`);
  return reduce(minus === '' ? digits : -digits, fraction.length - Number(exponent));
}

function reduce(digits: bigint, digitsAfterPoint: number): Decimal {
  if (digits === 0n) return { unscaled: 0n, scale: 0 };
  if (digitsAfterPoint < 0)
    return { unscaled: digits * 10n ** BigInt(-digitsAfterPoint), scale: 0 };
  let unscaled = digits;
  let scale = digitsAfterPoint;
  while (scale > 0 && unscaled % 10n === 0n) {
    unscaled /= 10n;
    scale -= 1;
  }
  return { unscaled, scale };
}

/** Below 0 if the first is less than the second, 0 if both are equal. */
export function compareDecimals(one: Decimal, other: Decimal): number {
  const scale = Math.max(one.scale, other.scale);
  const difference = scaled(one, scale) - scaled(other, scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

function scaled({ unscaled, scale }: Decimal, wanted: number): bigint {
  return unscaled * 10n ** BigInt(wanted - scale);
}

/** How many digits are before the point, leading zeros excluded. */
export function wholeDigits({ unscaled, scale }: Decimal): number {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString();
  return unscaled === 0n ? 0 : Math.max(0, digits.length - scale);
}

/** Without an exponent, with exactly so many digits after the point. @param scale not less than the number's */
export function formatDecimal(decimal: Decimal, scale: number): string {
  const unscaled = scaled(decimal, scale);
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const point = digits.length - scale;
  const fraction = scale === 0 ? '' : `.${digits.slice(point)}`;
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, point)}${fraction}`;
}

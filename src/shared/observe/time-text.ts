// Times and durations as text, at little cost.

/** Formats a moment (ms since 1970) by its second (since 1970). */
export function createSecondClock(format: (second: number) => string): (now: number) => string {
  let last = -1;
  let text = '';
  return (now) => {
    const second = Math.floor(now / 1000);
    if (second !== last) text = format(second);
    last = second;
    return text;
  };
}

/** Milliseconds with one digit of a fraction. */
export function tenths(ms: number): string {
  const rounded = Math.round(ms * 10);
  const whole = Math.floor(rounded / 10);
  return `${whole}.${rounded - whole * 10}`;
}

/** Milliseconds with three digits of a fraction. */
export function thousandths(ms: number): string {
  const rounded = Math.round(ms * 1000);
  const whole = Math.floor(rounded / 1000);
  return `${whole}.${threeDigits[rounded - whole * 1000]}`;
}

/** The numbers from 0 to 999, three digits each. */
export const threeDigits: readonly string[] = Array.from({ length: 1000 }, (_, number) =>
  String(number).padStart(3, '0'),
);

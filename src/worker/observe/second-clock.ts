// The time of day as text, made once a second: most that ask share theirs with the one before.
// Must not know what the text is for.

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

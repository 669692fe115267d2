// The shape of a JSON text, found in one pass before the text is parsed. Pure.

/** Integers of up to 15 digits are the same in a JavaScript number. */
const exactDigits = 15;

/** How deep a text nests, and whether a JavaScript number would lose digits of one of its numbers. */
export type JsonShape = { readonly depth: number; readonly isLossy: boolean };

/** The shape of a text, which need not be JSON. */
export function shapeOf(text: string): JsonShape {
  let depth = 0;
  let deepest = 0;
  let isLossy = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      const end = endOfNumber(text, at);
      isLossy ||= !isExact(text, at, end);
      at = end - 1;
    }
  }
  return { depth: deepest, isLossy };
}

/** The position of the closing quote: the next one that an even number of backslashes precedes. */
function endOfString(text: string, from: number): number {
  for (let at = from; ; ) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let before = at;
    while (text.charCodeAt(before - 1) === 0x5c) before -= 1;
    if ((at - before) % 2 === 0) return at;
  }
}

function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const digit = code >= 0x30 && code <= 0x39;
    // + - . e E
    if (!digit && code !== 0x2b && code !== 0x2d && code !== 0x2e && (code | 0x20) !== 0x65) break;
  }
  return at;
}

/** Whether a JavaScript number has exactly these digits: no fraction, no exponent, not too long, not -0. */
export function isExact(text: string, from: number, end: number): boolean {
  const minus = text.charCodeAt(from) === 0x2d;
  const first = minus ? from + 1 : from;
  if (end - first > exactDigits || (minus && text.charCodeAt(first) === 0x30)) return false;
  for (let at = first; at < end; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

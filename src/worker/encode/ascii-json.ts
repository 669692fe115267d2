// JSON text in ASCII, which is written into replies byte by byte.
// Must not know what it says.

/** A string as JSON; what is not ASCII stands as \\u escapes (RFC 8259, section 7). */
export function asciiJson(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

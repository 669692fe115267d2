// A number for the shape of a statement: its text without what stands in literals.
// Must not know grammar: this is a hint for speed, never for what a statement may do.

const singleQuote = 0x27;
const doubleQuote = 0x22;
const backslash = 0x5c;

/**
 * A 53-bit hash of the text in which digits count as one, and quoted strings as nothing. Two statements
 * that differ in their literals only have the same shape; the converse is not promised. Linear, no allocation.
 */
export function shapeOf(sql: string): number {
  let low = 0x811c9dc5;
  let high = 0x9e3779b9;
  let inNumber = false;
  for (let at = 0; at < sql.length; at += 1) {
    const code = sql.charCodeAt(at);
    const isDigit = code >= 0x30 && code <= 0x39;
    if (!(isDigit && inNumber)) {
      const token = isDigit ? 0x30 : code;
      low = Math.imul(low ^ token, 0x01000193);
      high = Math.imul(high ^ token, 0x85ebca6b) ^ (high >>> 15);
    }
    inNumber = isDigit;
    if (code === singleQuote || code === doubleQuote) at = endOfString(sql, at, code);
  }
  return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
}

/** Where the string's last quote is; a doubled one does not end it. */
function endOfString(sql: string, start: number, quote: number): number {
  let at = start + 1;
  while (at < sql.length) {
    const code = sql.charCodeAt(at);
    if (code === quote && sql.charCodeAt(at + 1) !== quote) break;
    at += code === backslash || code === quote ? 2 : 1;
  }
  return at;
}

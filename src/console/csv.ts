// The records of a CSV text.

/** Some records of a text. */
export type Records = {
  readonly text: string;
  readonly count: number;
  /** The text had more. */
  readonly isCut: boolean;
};

/**
 * Takes the header and the first `most` records. Each ends with a line break; one within quotes is part of a value.
 * @see https://www.rfc-editor.org/rfc/rfc4180
 */
export function takeRecords(text: string, most: number): Records {
  let isQuoted = false;
  // The header is not counted.
  let count = -1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) isQuoted = !isQuoted;
    if (code !== 0x0a || isQuoted) continue;
    count += 1;
    if (count === most) {
      return { text: text.slice(0, at + 1), count, isCut: at + 1 < text.length };
    }
  }
  return { text, count, isCut: false };
}

// How the head of a request may be written: to the letter of RFC 9112, or as DBSlayer took it. The parser gets the first form alone. Pure.

/** The form of heads on a connection. All indexes are into the same bytes. */
export interface HeadForm {
  /** The index behind an empty line before a head; `at`: the line is incomplete; -1: its end is malformed; null: there is none. */
  skipEmptyLine(bytes: Buffer, at: number): number | null;
  /** The index behind the empty line that ends a head, searched from `at` on; -1: it has not come. */
  findEnd(bytes: Buffer, at: number): number;
  /** The end of the first line, without its line break, searched from `at` on; -1: it has not come. */
  findLineEnd(bytes: Buffer, at: number): number;
  /** Whether a line ends in a way that is refused, from `at` on. */
  hasBadLineEnd(bytes: Buffer, at: number): boolean;
  /** The same request line, without its end, with single spaces if it may have several. */
  toStrictLine(line: Buffer): Buffer;
  /** The same head to the letter; null: there is one form alone. */
  readonly toStrictHead: ((head: Buffer) => Buffer) | null;
}

const [carriageReturn, lineFeed, space] = [0x0d, 0x0a, 0x20];
const lineEnd = Buffer.from('\r\n');
const oneSpace = Buffer.from(' ');

/** The longest end of a head: a search that goes on must begin this far before the new bytes. */
export const headEnd: Buffer = Buffer.from('\r\n\r\n');

/** Lines end with CR LF, and the parts of the request line have one space between them. */
export const strictHeads: HeadForm = {
  skipEmptyLine: (bytes, at) => {
    if (bytes[at] !== carriageReturn) return null;
    if (at + 1 === bytes.length) return at;
    return bytes[at + 1] === lineFeed ? at + 2 : -1;
  },
  findEnd: (bytes, at) => {
    const found = bytes.indexOf(headEnd, at);
    return found < 0 ? -1 : found + headEnd.length;
  },
  findLineEnd: (bytes, at) => bytes.indexOf(lineEnd, at),
  hasBadLineEnd: (bytes, at) => countBareLineFeeds(bytes, at, 1) > 0,
  toStrictLine: (line) => line,
  toStrictHead: null,
};

/** A line may also end with LF alone, and the parts of the request line may have several spaces between them. */
export const oldHeads: HeadForm = {
  skipEmptyLine: (bytes, at) =>
    bytes[at] === lineFeed ? at + 1 : strictHeads.skipEmptyLine(bytes, at),
  findEnd: (bytes, from) => {
    for (let at = bytes.indexOf(lineFeed, from); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
      const next = bytes[at + 1] === carriageReturn ? at + 2 : at + 1;
      if (bytes[next] === lineFeed) return next + 1;
    }
    return -1;
  },
  findLineEnd: (bytes, from) => {
    const at = bytes.indexOf(lineFeed, from);
    return bytes[at - 1] === carriageReturn ? at - 1 : at;
  },
  hasBadLineEnd: () => false,
  toStrictLine,
  toStrictHead: (head) => {
    const end = oldHeads.findLineEnd(head, 0);
    const line = toStrictLine(head.subarray(0, end));
    const bare = countBareLineFeeds(head, 0, Number.POSITIVE_INFINITY);
    if (bare === 0 && line.length === end) return head;
    const strict = Buffer.allocUnsafe(line.length + head.length - end + bare);
    let length = line.copy(strict);
    for (let at = end; at < head.length; at += 1) {
      const byte = head[at] as number;
      if (byte === lineFeed && head[at - 1] !== carriageReturn) {
        length = strict.writeUInt8(carriageReturn, length);
      }
      length = strict.writeUInt8(byte, length);
    }
    return strict;
  },
};

/** Spaces inside the target stay: the check of the request line refuses them. */
function toStrictLine(line: Buffer): Buffer {
  const methodEnd = line.indexOf(space);
  const version = line.lastIndexOf(space) + 1;
  let target = methodEnd + 1;
  while (line[target] === space) target += 1;
  let targetEnd = version - 1;
  while (line[targetEnd - 1] === space) targetEnd -= 1;
  const isStrict = target === methodEnd + 1 && targetEnd === version - 1;
  if (isStrict || methodEnd < 0 || targetEnd <= target) return line;
  const parts = [line.subarray(0, methodEnd), line.subarray(target, targetEnd)];
  return Buffer.concat([...parts.flatMap((part) => [part, oneSpace]), line.subarray(version)]);
}

/** Counts line feeds without a carriage return before them, up to `max`. */
function countBareLineFeeds(bytes: Buffer, from: number, max: number): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed, from); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) {
    if (bytes[at - 1] !== carriageReturn) count += 1;
    if (count === max) break;
  }
  return count;
}

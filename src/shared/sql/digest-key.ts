// Numbers for the shapes of statements, each made in one cheap pass. Texts with the same digest key have the same digest, so this file must
// cut a text as the lexer does: a caller that knows a key does not compute the digest again.
import { maxTextCharacters } from './digest.ts';
import {
  characterClasses,
  classOf,
  endOfBlockComment,
  endOfLineComment,
  inspectSpecialComment,
  isSpaceCode,
  isWordCode,
} from './lexer.ts';

const [doubleQuote, singleQuote, backtick, backslash] = [0x22, 0x27, 0x60, 0x5c];
const [hash, star, comma, dash, dot, slash] = [0x23, 0x2a, 0x2c, 0x2d, 0x2e, 0x2f];

/** The tokens that a byte may begin. */
const begins = { nothing: 0, word: 1, string: 2, number: 3, name: 4, comment: 5, nul: 6 } as const;
const beginsOf = Uint8Array.from({ length: 256 }, (_, byte) => whatBegins(byte));

function whatBegins(byte: number): number {
  if (byte === 0) return begins.nul;
  if (byte === backtick) return begins.name;
  if (byte === singleQuote || byte === doubleQuote) return begins.string;
  if (byte === hash || byte === dash || byte === slash) return begins.comment;
  if (classOf(byte) === characterClasses.digit) return begins.number;
  return isWordCode(byte) ? begins.word : begins.nothing;
}

/** Facts about two bytes at once (little-endian): the text is read four bytes at a time unless one of them matters. */
const pairs = { plain: 1, unquoted: 2 } as const;
const knownOfPair = createKnownOfPair();

function createKnownOfPair(): Uint8Array {
  const isPlain = (byte: number) => (beginsOf[byte] as number) <= begins.word;
  const isUnquoted = (byte: number) =>
    byte !== 0 && byte !== backslash && beginsOf[byte] !== begins.string;
  return Uint8Array.from({ length: 0x10000 }, (_, pair) => {
    const [first, second] = [pair & 0xff, pair >>> 8];
    return (
      (isPlain(first) && isPlain(second) ? pairs.plain : 0) |
      (isUnquoted(first) && isUnquoted(second) ? pairs.unquoted : 0)
    );
  });
}

/** Hashed in place of what is left out; no byte, and no four plain bytes, have these values. */
const marks = {
  number: 0x100,
  string: 0x101,
  comment: 0x102,
  executableComment: 0x103,
  /** The digest ends here. */
  cut: 0x104,
  cutInList: 0x105,
  openName: 0x106,
  long: 0x107,
} as const;

/** An end position: from here on servers may read the text differently, or it is cut off. */
const cut = -1;

/** Computes keys; has a buffer for one text. */
export class DigestKeys {
  /** UTF-8 has at most three bytes for a unit of UTF-16; four more are read at the end. */
  readonly #bytes = Buffer.alloc(3 * maxTextCharacters + 4);
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset);
  readonly #encoder = new TextEncoder();
  /** The text at hand, if it has comments. */
  #text: string | null = null;
  #length = 0;

  /**
   * A 53-bit hash of the text without the contents of literals and comments; a list of literals counts as one. Equal keys mean equal
   * digests, except for collisions and for the last characters of a digest that is cut at its maximal length. One digest may have many
   * keys. Linear; it reads no more of a text than `digest`.
   * @param seed a 32-bit number: texts with different seeds have different keys
   */
  keyOf(sql: string, seed: number): number {
    const isLong = sql.length > maxTextCharacters;
    const text = isLong ? sql.slice(0, maxTextCharacters) : sql;
    this.#length = this.#encoder.encodeInto(text, this.#bytes).written;
    this.#text = null;
    return this.#hash(seed | 0, isLong);
  }

  #hash(seed: number, isLong: boolean): number {
    const [bytes, view, length] = [this.#bytes, this.#view, this.#length];
    let low = mix(seed, isLong ? marks.long : 0, lowFactor);
    let high = mix(seed, isLong ? marks.long : 0, highFactor);
    let inWord = false;
    let inName = false;
    // The next literal continues a list: it adds nothing.
    let isListed = false;
    let at = 0;
    while (at < length) {
      const four = view.getUint32(at, true);
      const known = (knownOfPair[four & 0xffff] as number) & (knownOfPair[four >>> 16] as number);
      if ((known & pairs.plain) !== 0 && at + 4 <= length) {
        low = mix(low, four, lowFactor);
        high = mix(high, four, highFactor);
        inWord = beginsOf[four >>> 24] === begins.word;
        at += 4;
        continue;
      }
      const byte = four & 0xff;
      const begun = beginsOf[byte] as number;
      let token = byte;
      let end = at + 1;
      if (inName) {
        inName = begun !== begins.name;
        if (begun === begins.nul) end = cut;
      } else if (begun === begins.string) {
        token = marks.string;
        end = this.#endOfString(end, byte);
      } else if (begun === begins.number) {
        if (!inWord) {
          token = marks.number;
          end = endOfNumber(bytes, end, length);
        }
      } else if (begun === begins.name) {
        inName = true;
      } else if (begun === begins.comment) {
        end = this.#endOfComment(at, byte);
        if (end > at + 1) token = this.#markOfComment(at, byte);
      } else if (begun === begins.nul) end = cut;
      if (end === cut) {
        token = isListed ? marks.cutInList : marks.cut;
        isListed = false;
      }
      if (!isListed) {
        low = mix(low, token, lowFactor);
        high = mix(high, token, highFactor);
      }
      if (end === cut) break;
      inWord = begun === begins.word || (inWord && begun === begins.number);
      at = end;
      isListed = false;
      if ((token === marks.string || token === marks.number) && bytes[end] === comma) {
        at = nextOfList(bytes, end, length);
        isListed = at > end;
      }
    }
    if (inName) low = mix(low, marks.openName, lowFactor);
    return (high >>> 11) * 0x1_0000_0000 + (low >>> 0);
  }

  /** The position after the quote that ends a string; a doubled one does not. */
  #endOfString(from: number, quote: number): number {
    const [bytes, view, length] = [this.#bytes, this.#view, this.#length];
    let at = from;
    while (at < length) {
      const four = view.getUint32(at, true);
      const known = (knownOfPair[four & 0xffff] as number) & (knownOfPair[four >>> 16] as number);
      const byte = four & 0xff;
      if ((known & pairs.unquoted) !== 0) at += 4;
      else if (byte === quote) {
        if (at + 1 >= length || bytes[at + 1] !== quote) return at + 1;
        at += 2;
      } else if (byte === backslash) {
        if (at + 1 < length && bytes[at + 1] === quote) return cut;
        at += 2;
      } else if (byte === 0 && quote === doubleQuote) return cut;
      else at += 1;
    }
    return cut;
  }

  /** The position after the comment that starts here; after this byte if there is none. */
  #endOfComment(at: number, first: number): number {
    const second = at + 1 < this.#length ? this.#bytes[at + 1] : 0;
    if (first !== hash && second !== (first === slash ? star : dash)) return at + 1;
    const text = this.#latin1();
    if (first === slash) {
      const end = endOfBlockComment(text, at);
      return end >= 0 && inspectSpecialComment(text, at, end).plain ? end : cut;
    }
    const end = endOfLineComment(text, first, at);
    if (end < 0) return at + 1;
    return text.charCodeAt(end) === 0 ? cut : end;
  }

  #markOfComment(at: number, first: number): number {
    const isExecutable =
      first === slash && inspectSpecialComment(this.#latin1(), at, at + 2).executable;
    return isExecutable ? marks.executableComment : marks.comment;
  }

  /** The text with a character for each byte: the marks of comments are ASCII. */
  #latin1(): string {
    this.#text ??= this.#bytes.toString('latin1', 0, this.#length);
    return this.#text;
  }
}

const lowFactor = 0x01000193;
const highFactor = 0x85ebca6b;

function mix(hashed: number, token: number, factor: number): number {
  const product = Math.imul(hashed ^ token, factor);
  return product ^ (product >>> 15);
}

/** The position after a number that has begun, its fraction included. */
function endOfNumber(bytes: Uint8Array, from: number, length: number): number {
  let at = from;
  while (at < length) {
    const byte = bytes[at] as number;
    if (isWordCode(byte)) at += 1;
    else if (byte === dot && at + 1 < length && beginsOf[bytes[at + 1] as number] === begins.number)
      at += 2;
    else break;
  }
  return at;
}

/** The position of the next literal after a comma; the comma's own if none follows. */
function nextOfList(bytes: Uint8Array, from: number, length: number): number {
  let at = from + 1;
  while (at < length && isSpaceCode(bytes[at] as number)) at += 1;
  if (at >= length) return from;
  const begun = beginsOf[bytes[at] as number];
  return begun === begins.string || begun === begins.number ? at : from;
}

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

/** The position of the string's last quote; a doubled one does not end it. */
function endOfString(sql: string, start: number, quote: number): number {
  let at = start + 1;
  while (at < sql.length) {
    const code = sql.charCodeAt(at);
    if (code === quote && sql.charCodeAt(at + 1) !== quote) break;
    at += code === backslash || code === quote ? 2 : 1;
  }
  return at;
}

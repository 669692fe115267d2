// Parses a long JSON text in pieces, as JSON.parse does at once.
import { LosslessNumber } from 'lossless-json';
import { type Pieces, stepsInPiece } from '../../shared/pieces.ts';

/** With more members in an object, the engine stops for long to make room for the next one. */
export const maxMembers = 65_535;

/** Why a text is refused. */
export class JsonFault extends Error {
  readonly kind: 'syntax' | 'depth' | 'members';
  /** The offset in the text, in UTF-16 code units. */
  readonly position: number;

  constructor(kind: JsonFault['kind'], position: number) {
    super(`${kind} at ${position}`);
    this.kind = kind;
    this.position = position;
  }
}

type Members = Record<string, unknown>;
/** A container that is not closed yet, and in an object the key of the value that comes next. */
type Open = {
  readonly array: unknown[] | null;
  readonly object: Members | null;
  key: string;
  count: number;
};

const codes = {
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;
const words: readonly (readonly [text: string, value: unknown])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y.source;

/**
 * Parses a text as JSON.parse does: of a repeated key the last value counts, and `__proto__` is a key like any other.
 * @param isExact whether a JavaScript number keeps all of these digits; null: numbers may lose digits
 * @throws JsonFault
 */
export function* parseInPieces(
  text: string,
  maxLevels: number,
  isExact: ((digits: string) => boolean) | null,
): Pieces<unknown> {
  const parsing = new Parsing(text, maxLevels, isExact);
  while (parsing.readOn(stepsInPiece)) yield;
  return parsing.root;
}

class Parsing {
  root: unknown;
  readonly #text: string;
  readonly #maxLevels: number;
  readonly #isExact: ((digits: string) => boolean) | null;
  readonly #open: Open[] = [];
  readonly #number = new RegExp(number, 'y');
  #at = 0;
  /** The next part: a value, or the end of an empty container; a value; a comma or the end; nothing. */
  #state: 'first' | 'value' | 'next' | 'end' = 'value';

  constructor(text: string, maxLevels: number, isExact: ((digits: string) => boolean) | null) {
    this.#text = text;
    this.#maxLevels = maxLevels;
    this.#isExact = isExact;
  }

  /** Reads on by so many values at most; returns whether there are more. */
  readOn(maxSteps: number): boolean {
    for (let left = maxSteps; left > 0; left -= 1) {
      this.#skipSpace();
      if (this.#state === 'end') {
        if (this.#at < this.#text.length) this.#fail();
        return false;
      }
      this.#step();
    }
    return true;
  }

  #step(): void {
    const open = this.#open.at(-1);
    const code = this.#text.charCodeAt(this.#at);
    if (open !== undefined && this.#state !== 'value') {
      if (code === (open.array === null ? codes.closeBrace : codes.closeBracket)) {
        this.#at += 1;
        this.#open.pop();
        this.#settle();
        return;
      }
      if (this.#state === 'next') {
        if (code !== codes.comma) this.#fail();
        this.#at += 1;
        this.#skipSpace();
      }
    }
    if (open?.object != null) this.#readKey(open);
    this.#readValue();
  }

  #readKey(open: Open): void {
    if (this.#text.charCodeAt(this.#at) !== codes.quote) this.#fail();
    open.key = this.#readString();
    open.count += 1;
    if (open.count > maxMembers) throw new JsonFault('members', this.#at);
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) !== codes.colon) this.#fail();
    this.#at += 1;
    this.#skipSpace();
  }

  #readValue(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (code === codes.openBrace) this.#begin({ array: null, object: {}, key: '', count: 0 });
    else if (code === codes.openBracket)
      this.#begin({ array: [], object: null, key: '', count: 0 });
    else {
      const value = code === codes.quote ? this.#readString() : this.#readScalar(code);
      this.#put(value);
      this.#settle();
    }
  }

  #begin(open: Open): void {
    if (this.#open.length === this.#maxLevels) throw new JsonFault('depth', this.#at);
    this.#put(open.array ?? open.object);
    this.#open.push(open);
    this.#at += 1;
    this.#state = 'first';
  }

  #put(value: unknown): void {
    const open = this.#open.at(-1);
    if (open === undefined) this.root = value;
    else if (open.array !== null) open.array.push(value);
    else if (open.key === '__proto__') {
      const how = { value, enumerable: true, configurable: true, writable: true };
      Object.defineProperty(open.object as Members, open.key, how);
    } else (open.object as Members)[open.key] = value;
  }

  #settle(): void {
    this.#state = this.#open.length === 0 ? 'end' : 'next';
  }

  #readScalar(code: number): unknown {
    if (code === codes.minus || (code >= codes.zero && code <= codes.nine))
      return this.#readNumber();
    for (const [word, value] of words) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return this.#fail();
  }

  #readNumber(): unknown {
    const pattern = this.#number;
    pattern.lastIndex = this.#at;
    const digits = pattern.exec(this.#text)?.[0];
    if (digits === undefined) return this.#fail();
    this.#at += digits.length;
    return this.#isExact === null || this.#isExact(digits)
      ? Number(digits)
      : new LosslessNumber(digits);
  }

  /** Reads from the opening quote. JSON.parse decodes escapes and refuses control characters. */
  #readString(): string {
    const from = this.#at;
    for (let at = from; ; ) {
      at = this.#text.indexOf('"', at + 1);
      if (at < 0) this.#fail();
      let before = at;
      while (this.#text.charCodeAt(before - 1) === codes.backslash) before -= 1;
      if ((at - before) % 2 === 1) continue;
      this.#at = at + 1;
      try {
        return JSON.parse(this.#text.slice(from, at + 1)) as string;
      } catch {
        this.#at = from;
        this.#fail();
      }
    }
  }

  #skipSpace(): void {
    for (; ; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  }

  #fail(): never {
    throw new JsonFault('syntax', this.#at);
  }
}

// A JSON parser that shares nothing with the gateway: RFC 8259 to the letter, numbers kept as their text.
//parse.
import { isUtf8 } from 'node:buffer';

/** A number as the document has it. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A value; objects are Maps, so that no name is special and the order is kept. */
export type JsonValue = string | boolean | null | JsonNumber | JsonValue[] | Map<string, JsonValue>;

const quote = 0x22;
const backslash = 0x5c;
const deepest = 1000;
const numberGrammar = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const numberBytes = new Set(Buffer.from('0123456789+-.eE'));
const escapes = new Map(
  [...'"\\/bfnrt'].map((letter, index) => [letter.charCodeAt(0), '"\\/\b\f\n\r\t'.charAt(index)]),
);

/**
 * Parses one document. Beyond the grammar it refuses what no good writer sends: invalid UTF-8, a byte order
 * mark, lone surrogates, a name twice in one object. Throws SyntaxError with the byte's position.
 */
export function parseStrictJson(document: Uint8Array | string): JsonValue {
  const bytes = Buffer.isBuffer(document) ? document : Buffer.from(document as string);
  if (!isUtf8(bytes)) throw new SyntaxError('not UTF-8');
  return new Parser(bytes).document();
}

/** The value at a path of names and indexes. Throws if there is none. */
export function at(value: JsonValue, ...path: readonly (string | number)[]): JsonValue {
  let current: JsonValue | undefined = value;
  for (const step of path) {
    if (current instanceof Map) current = current.get(String(step));
    else if (Array.isArray(current)) current = current[Number(step)];
    else current = undefined;
    if (current === undefined) throw new Error(`nothing at ${path.join('.')} (${step})`);
  }
  return current as JsonValue;
}

class Parser {
  readonly #bytes: Buffer;
  #at = 0;
  #depth = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  document(): JsonValue {
    this.#space();
    const value = this.#value();
    this.#space();
    if (this.#at < this.#bytes.length) throw this.#error('something after the document');
    return value;
  }

  #value(): JsonValue {
    switch (this.#bytes[this.#at]) {
      case quote:
        return this.#string();
      case 0x7b:
        return this.#nested(() => this.#object());
      case 0x5b:
        return this.#nested(() => this.#array());
      case 0x74:
        return this.#word('true', true);
      case 0x66:
        return this.#word('false', false);
      case 0x6e:
        return this.#word('null', null);
      default:
        return this.#number();
    }
  }

  #nested<Value>(read: () => Value): Value {
    if (++this.#depth > deepest) throw this.#error('nested too deeply');
    this.#at += 1;
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #object(): Map<string, JsonValue> {
    const object = new Map<string, JsonValue>();
    this.#space();
    if (this.#skip(0x7d)) return object;
    for (;;) {
      if (this.#bytes[this.#at] !== quote) throw this.#error('no name');
      const name = this.#string();
      if (object.has(name)) throw this.#error(`name ${JSON.stringify(name)} twice`);
      this.#space();
      if (!this.#skip(0x3a)) throw this.#error('no colon');
      this.#space();
      object.set(name, this.#value());
      this.#space();
      if (this.#skip(0x7d)) return object;
      if (!this.#skip(0x2c)) throw this.#error('neither comma nor }');
      this.#space();
    }
  }

  #array(): JsonValue[] {
    const array: JsonValue[] = [];
    this.#space();
    if (this.#skip(0x5d)) return array;
    for (;;) {
      array.push(this.#value());
      this.#space();
      if (this.#skip(0x5d)) return array;
      if (!this.#skip(0x2c)) throw this.#error('neither comma nor ]');
      this.#space();
    }
  }

  #string(): string {
    let start = ++this.#at;
    let text = '';
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw this.#error('a string without end');
      if (byte < 0x20) throw this.#error('a control character in a string');
      if (byte === quote || byte === backslash) {
        text += this.#bytes.toString('utf8', start, this.#at++);
        if (byte === quote) return text;
        text += this.#escape();
        start = this.#at;
      } else this.#at += 1;
    }
  }

  #escape(): string {
    const byte = this.#bytes[this.#at++];
    if (byte !== 0x75) {
      const character = escapes.get(byte ?? -1);
      if (character === undefined) throw this.#error('unknown escape');
      return character;
    }
    const unit = this.#hex4();
    if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit);
    if (unit > 0xdbff || !this.#skip(backslash) || !this.#skip(0x75)) {
      throw this.#error('a lone surrogate');
    }
    const low = this.#hex4();
    if (low < 0xdc00 || low > 0xdfff) throw this.#error('a lone surrogate');
    return String.fromCharCode(unit, low);
  }

  #hex4(): number {
    const digits = this.#bytes.toString('latin1', this.#at, this.#at + 4);
    if (!/^[0-9A-Fa-f]{4}$/.test(digits)) throw this.#error('four hexadecimal digits expected');
    this.#at += 4;
    return Number.parseInt(digits, 16);
  }

  #number(): JsonNumber {
    const start = this.#at;
    let end = start;
    while (numberBytes.has(this.#bytes[end] ?? 0)) end += 1;
    const text = this.#bytes.toString('latin1', start, end);
    if (!numberGrammar.test(text)) throw this.#error('no value');
    this.#at = end;
    return new JsonNumber(text);
  }

  #word<Value>(word: string, value: Value): Value {
    if (this.#bytes.toString('latin1', this.#at, this.#at + word.length) !== word) {
      throw this.#error('no value');
    }
    this.#at += word.length;
    return value;
  }

  #skip(byte: number): boolean {
    if (this.#bytes[this.#at] !== byte) return false;
    this.#at += 1;
    return true;
  }

  #space(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      this.#at += 1;
    }
  }

  #error(what: string): SyntaxError {
    return new SyntaxError(`${what} at byte ${this.#at}`);
  }
}

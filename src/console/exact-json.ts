// JSON that keeps every digit of numbers, read and written. Pure.

/** A number as its text, since doubles cannot hold every BIGINT or DECIMAL. */
export class Digits {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON value. An object's names may be any text, even `__proto__`. */
export type Exact =
  | null
  | boolean
  | string
  | Digits
  | readonly Exact[]
  | ReadonlyMap<string, Exact>;

/** The beginning of a string is its quote only: a pattern for all of it fails with a RangeError from about 10 MB on. */
const token = /\s*(?:([{}[\],:])|(")|(-?\d[\d.eE+-]*)|(true|false|null))/y;

const words: Readonly<Record<string, Exact>> = { true: true, false: false, null: null };

/** Reads one JSON value. Throws a SyntaxError if it is not JSON. */
export function parseExact(text: string): Exact {
  const reader = new Reader(text);
  const value = reader.value(reader.next());
  reader.end();
  return value;
}

type Token = { readonly mark: string } | { readonly value: Exact };

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): Token {
    token.lastIndex = this.#at;
    const match = token.exec(this.#text);
    if (match === null) throw new SyntaxError(`no JSON at ${this.#at}`);
    this.#at = token.lastIndex;
    const [, mark, quote, digits, word] = match;
    if (mark !== undefined) return { mark };
    if (quote !== undefined) return { value: this.#string() };
    if (digits !== undefined) return { value: new Digits(digits) };
    return { value: words[word as string] as Exact };
  }

  value(first: Token): Exact {
    if ('value' in first) return first.value;
    if (first.mark === '[') return this.#list();
    if (first.mark === '{') return this.#object();
    throw new SyntaxError(`${first.mark} before ${this.#at}`);
  }

  end(): void {
    if (this.#text.trimEnd().length > this.#at) {
      throw new SyntaxError(`more than one value at ${this.#at}`);
    }
  }

  /** The string whose opening quote was read last. */
  #string(): string {
    const from = this.#at - 1;
    let to = this.#text.indexOf('"', this.#at);
    while (isEscaped(this.#text, to)) to = this.#text.indexOf('"', to + 1);
    if (to === -1) throw new SyntaxError(`no end of the string at ${from}`);
    this.#at = to + 1;
    return JSON.parse(this.#text.slice(from, this.#at)) as string;
  }

  #list(): readonly Exact[] {
    const list: Exact[] = [];
    for (let token = this.next(); !isMark(token, ']'); token = this.next()) {
      if (isMark(token, ',')) token = this.next();
      list.push(this.value(token));
    }
    return list;
  }

  #object(): ReadonlyMap<string, Exact> {
    const object = new Map<string, Exact>();
    for (let token = this.next(); !isMark(token, '}'); token = this.next()) {
      if (isMark(token, ',')) token = this.next();
      if (!('value' in token) || typeof token.value !== 'string') {
        throw new SyntaxError(`no name before ${this.#at}`);
      }
      const name = token.value;
      if (!isMark(this.next(), ':')) throw new SyntaxError(`no colon before ${this.#at}`);
      object.set(name, this.value(this.next()));
    }
    return object;
  }
}

/** Whether an odd number of backslashes is before this character. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text[first - 1] === '\\') first -= 1;
  return (at - first) % 2 === 1;
}

function isMark(token: Token, mark: string): boolean {
  return 'mark' in token && token.mark === mark;
}

/** JSON with the original digits. */
export function writeExact(value: Exact): string {
  if (value instanceof Digits) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeExact).join(',')}]`;
  if (value instanceof Map) {
    const members = [...value].map(([name, one]) => `${JSON.stringify(name)}:${writeExact(one)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

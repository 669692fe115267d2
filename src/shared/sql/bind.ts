// Puts parameter values into the text of one statement, as literals.
// Must not know where the request came from, nor run anything.
import type { FailureCode } from '../failure-codes.ts';
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { describeDoubt, isSpaceCode, Lexer, tokenKinds } from './lexer.ts';
import { encodeLiteral, type Literal } from './literal.ts';

/**
 * Values for `?` in order, or for `:name` by name: strings, numbers (or LosslessNumbers), booleans, null,
 * {"$binary": base64}, and arrays of these for `IN (?)`.
 */
export type Parameters = readonly unknown[] | Readonly<Record<string, unknown>>;

/** What the request calls its parameters, for messages. */
export type ParametersKey = 'PARAMS' | 'params';

/**
 * Why parameters cannot be bound. `message` is for people: it names the parameter, and holds no value.
 * `offset` is where in the text, in UTF-16 units; null where no single place is to blame.
 */
export type BindFailure = {
  readonly code: FailureCode;
  readonly message: string;
  readonly offset: number | null;
};

/** The text with its values in it, or why they cannot be put there. */
export type Bound = { readonly ok: true; readonly sql: string } | Unbound;

type Unbound = { readonly ok: false; readonly failure: BindFailure };

/**
 * What `IN (…)` holds for an empty array: nothing equals it, and everything differs from it, NULL included.
 * (`IN (NULL)` would make NOT IN match nothing too, and MySQL takes no LIMIT here.) A derived table, because where nothing
 * can match, the servers see it through a semi-join only and then read no row; beside `FROM DUAL` they scan the other table
 * (seen on MySQL 9.7, and on MariaDB 10.11, which still scans it in an UPDATE or DELETE of one table).
 */
const emptyList = 'SELECT NULL FROM (SELECT NULL) AS empty_list WHERE FALSE';
/** MySQL's own limit for a prepared statement. An array for `IN (?)` is one of them. */
export const maxParameters = 65_535;
/** Of a name that a client made up. */
const maxNameUnits = 64;

/**
 * Binds `params` to the placeholders of `sql`, which must be one statement. Every value is used;
 * numbers are counted and names matched exactly. An array stands alone in the parentheses of an IN. Text whose literals
 * another sql_mode or server would cut elsewhere is refused, so that no value can end up inside a literal. Never throws:
 * what is put in is counted before it is, and a named value is encoded once, however often it is used.
 * @param maxBytes how long the text may become, as UTF-8; at most the longest string there is
 */
export function bind(
  sql: string,
  params: Parameters,
  maxBytes: number,
  key: ParametersKey = 'PARAMS',
): Bound {
  const binding = new Binding(sql, params, maxBytes, key);
  let bound: Bound | null;
  do bound = binding.readOn(Number.POSITIVE_INFINITY);
  while (bound === null);
  return bound;
}

/** The same in pieces. */
export function* bindInPieces(
  sql: string,
  params: Parameters,
  maxBytes: number,
  key: ParametersKey,
): Pieces<Bound> {
  const binding = new Binding(sql, params, maxBytes, key);
  for (;;) {
    const bound = binding.readOn(stepsInPiece);
    if (bound !== null) return bound;
    yield;
  }
}

class Binding {
  readonly #sql: string;
  readonly #positional: readonly unknown[] | null;
  readonly #named: Readonly<Record<string, unknown>> | null;
  readonly #key: ParametersKey;
  readonly #lexer: Lexer;
  readonly #used: Set<string> | null;
  /** By name. */
  readonly #literals = new Map<string, string>();
  readonly #maxBytes: number;
  #count = 0;
  /** Of the first `?` that has no value. */
  #missingOffset: number | null = null;
  #out = '';
  /** As UTF-8; literals are ASCII. */
  #outBytes = 0;
  #copied = 0;
  #before: number = tokenKinds.end;
  #afterIn = false;
  #inList = false;
  /** The array that a parenthesis must close now. */
  #list: Value | null = null;
  /** The list whose values are being encoded; null: none is. */
  #items: ListItems | null = null;
  /** Behind the first semicolon; -1: there is none. */
  #ended = -1;
  readonly #isTooMany: boolean;

  constructor(sql: string, params: Parameters, maxBytes: number, key: ParametersKey) {
    this.#sql = sql;
    this.#maxBytes = maxBytes;
    this.#positional = Array.isArray(params) ? params : null;
    this.#named = Array.isArray(params) ? null : (params as Readonly<Record<string, unknown>>);
    this.#used = this.#named === null ? null : new Set();
    this.#key = key;
    this.#lexer = new Lexer(sql);
    const given = this.#positional ?? Object.keys(this.#named ?? {});
    this.#isTooMany = given.length > maxParameters;
  }

  /** Reads on by so many tokens, or values of a list, at most; null: there are more. */
  readOn(maxSteps: number): Bound | null {
    if (this.#isTooMany) return this.#tooMany();
    const lexer = this.#lexer;
    for (let left = maxSteps; left > 0; left -= 1) {
      if (this.#items !== null) {
        const failed = this.#encodeItem(this.#items);
        if (failed !== null) return failed;
        continue;
      }
      const kind = lexer.next();
      if (kind === tokenKinds.end) {
        return this.#list === null ? this.#finish() : this.#misplaced(this.#list);
      }
      const failed = this.#see(kind);
      if (failed !== null) return failed;
    }
    return null;
  }

  #see(kind: number): Unbound | null {
    const lexer = this.#lexer;
    if (this.#list !== null && kind !== tokenKinds.close) return this.#misplaced(this.#list);
    this.#list = null;
    if (kind === tokenKinds.semicolon && this.#ended < 0) this.#ended = lexer.end;
    const found = this.#valueAt(kind);
    const failed = found === null ? null : found.ok ? this.#take(found) : found;
    if (failed !== null) return failed;
    this.#inList = this.#afterIn && kind === tokenKinds.open;
    this.#afterIn = kind === tokenKinds.word && canBeIn(this.#before) && isIn(this.#sql, lexer);
    this.#before = kind;
    return null;
  }

  #take(found: Value): Unbound | null {
    if (this.#count > maxParameters) return this.#tooMany();
    if (Array.isArray(found.given)) this.#list = found;
    if (this.#list !== null && !this.#inList) return this.#misplaced(this.#list);
    const literal = this.#literalOf(found);
    if (literal === null) return null;
    if (typeof literal !== 'string') return literal;
    return this.#put(literal);
  }

  #put(literal: string): Unbound | null {
    this.#insert(literal);
    return this.#outBytes > this.#maxBytes ? this.#tooLarge() : null;
  }

  /** Encodes the next value of a list, or puts the list into the text where there is none left. */
  #encodeItem(items: ListItems): Unbound | null {
    const { value, given, count } = items;
    if (count === given.length) {
      this.#items = null;
      const literal = [...items.chunks, items.literals.join(',')].join(',');
      if (typeof value.at === 'string') this.#literals.set(value.at, literal);
      return this.#put(literal);
    }
    const literal = encodeLiteral(given[count], items.leftBytes - 1);
    if (!literal.ok) return this.#refuse(literal, value, count);
    items.leftBytes -= literal.sql.length + 1;
    if (items.leftBytes < 0) return this.#tooLarge();
    // A text that grew by a million appends would be put together at once when it is first read.
    if (items.literals.length === stepsInPiece) {
      items.chunks.push(items.literals.join(','));
      items.literals.length = 0;
    }
    items.literals.push(literal.sql);
    items.count += 1;
    return null;
  }

  #finish(): Bound {
    const doubt = this.#isUntouched ? null : describeDoubt(this.#lexer);
    if (doubt !== null) return failed('PARAMS_TEXT', doubt);
    const second = this.#ended < 0 ? -1 : findSecondStatement(this.#sql, this.#ended);
    if (second >= 0) {
      const message = `${this.#key} go with one statement; another begins at offset ${second}`;
      return failed('PARAMS_SEVERAL', message, second);
    }
    const unused = this.#unused();
    if (unused !== null) return unused;
    const rest = this.#sql.slice(this.#copied);
    if (this.#outBytes + Buffer.byteLength(rest) > this.#maxBytes) return this.#tooLarge();
    return { ok: true, sql: this.#out + rest };
  }

  /** Nothing was to be put in: wherever literals end, the text stays what it is. */
  get #isUntouched(): boolean {
    const given = this.#positional ?? Object.keys(this.#named ?? {});
    return given.length === 0 && this.#count === 0;
  }

  #unused(): Unbound | null {
    if (this.#positional !== null) {
      const [wanted, given] = [this.#count, this.#positional.length];
      if (wanted === given) return null;
      const missing = this.#missingOffset;
      const first = missing === null ? '' : `; the first without is at offset ${missing}`;
      const none =
        wanted === 0 ? '; an array is for ? (outside of quotes), an object is for :name' : '';
      return failed(
        'PARAMS_COUNT',
        `the statement has ${wanted} placeholder(s), ${this.#key} has ${given} value(s)${first}${none}`,
        missing,
      );
    }
    for (const name of Object.keys(this.#named ?? {})) {
      if (this.#used?.has(name) === true) continue;
      const message = `${this.#key} holds a name that the statement does not use: ${quoteName(name)}`;
      return failed('PARAMS_NAME', message);
    }
    return null;
  }

  /** What stands for the token at which the lexer stands; null where that is no placeholder. */
  #valueAt(kind: number): Value | Unbound | null {
    if (kind === tokenKinds.placeholder) return this.#nextValue();
    return kind === tokenKinds.namedPlaceholder ? this.#namedValue() : null;
  }

  #nextValue(): Value | Unbound {
    const offset = this.#lexer.start;
    if (this.#positional === null) {
      const message = `${this.#key} is an object, so placeholders are written :name, not ? as at offset ${offset}`;
      return failed('PARAMS_COUNT', message, offset);
    }
    const at = this.#count++;
    const isThere = at < this.#positional.length;
    // A missing value is reported at the end, with the full count.
    if (!isThere) this.#missingOffset ??= offset;
    return { ok: true, given: isThere ? this.#positional[at] : null, at, offset };
  }

  /** Null when names are none of our business: with an array only `?` is a placeholder. */
  #namedValue(): Value | Unbound | null {
    if (this.#named === null) return null;
    const offset = this.#lexer.start;
    const name = this.#sql.slice(offset + 1, this.#lexer.end);
    if (!Object.hasOwn(this.#named, name)) {
      const message = `${this.#key} has no value for the name at offset ${offset}: ${quoteName(name)}`;
      return failed('PARAMS_NAME', message, offset);
    }
    this.#count += 1;
    this.#used?.add(name);
    return { ok: true, given: this.#named[name], at: name, offset };
  }

  /** Null: it is a list, whose values are encoded one after the other. */
  #literalOf(value: Value): string | Unbound | null {
    const known = typeof value.at === 'string' ? this.#literals.get(value.at) : undefined;
    if (known !== undefined) return known;
    const { given } = value;
    if (Array.isArray(given)) {
      if (given.length === 0) return emptyList;
      this.#items = {
        value,
        given,
        count: 0,
        chunks: [],
        literals: [],
        leftBytes: this.#leftBytes + 1,
      };
      return null;
    }
    const literal = encodeLiteral(given, this.#leftBytes);
    if (!literal.ok) return this.#refuse(literal, value, null);
    if (typeof value.at === 'string') this.#literals.set(value.at, literal.sql);
    return literal.sql;
  }

  /** What a literal may be long at most. */
  get #leftBytes(): number {
    return this.#maxBytes - this.#outBytes;
  }

  #refuse(literal: Literal & { readonly ok: false }, value: Value, index: number | null): Unbound {
    if (literal.reason === 'too large') return this.#tooLarge();
    const item = index === null ? '' : `[${index}]`;
    return failed('PARAMS_VALUE', `${this.#nameOf(value)}${item} ${literal.fault}`, value.offset);
  }

  #misplaced(value: Value): Unbound {
    const message = `${this.#nameOf(value)} is an array, which may only stand alone in the parentheses of IN (?) or IN (:name), not where it is used, at offset ${value.offset}`;
    return failed('PARAMS_VALUE', message, value.offset);
  }

  #nameOf(value: Value): string {
    return `${this.#key}[${typeof value.at === 'number' ? value.at : quoteName(value.at)}]`;
  }

  #tooMany(): Unbound {
    const message = `a statement has at most ${maxParameters} parameters`;
    return failed('TOO_MANY_PARAMETERS', message);
  }

  #tooLarge(): Unbound {
    const message = `the statement with its ${this.#key} in it would be longer than ${this.#maxBytes} bytes, which is all that the database takes (max_allowed_packet)`;
    return failed('STATEMENT_TOO_LARGE', message);
  }

  /** Puts the literal where the placeholder stood, apart from a word, quote or operator it could merge with. */
  #insert(literal: string): void {
    const { start, end } = this.#lexer;
    const before = start > 0 ? this.#sql.charCodeAt(start - 1) : 0x20;
    const text = this.#sql.slice(this.#copied, start);
    // Behind a minus neither a space nor a minus may come: both could make a comment of `--`.
    const isSigned = before === 0x2d;
    const opening = isSigned ? '(' : separates(before) ? '' : ' ';
    const isMerging = end < this.#sql.length && !separates(this.#sql.charCodeAt(end));
    const closing = `${isSigned ? ')' : ''}${isMerging ? ' ' : ''}`;
    this.#copied = end;
    this.#outBytes += Buffer.byteLength(text) + opening.length + literal.length + closing.length;
    // A string has a longest length, a rope that is only appended to is not flattened before its use.
    if (this.#outBytes <= this.#maxBytes) this.#out += text + opening + literal + closing;
  }
}

/** What a placeholder stands for. */
type Value = {
  readonly ok: true;
  readonly given: unknown;
  /** Its place among the parameters: an index or a name. */
  readonly at: number | string;
  /** Of the placeholder. */
  readonly offset: number;
};

/** A list on its way into the text. */
type ListItems = {
  readonly value: Value;
  readonly given: readonly unknown[];
  /** How many of them are encoded. */
  count: number;
  /** Their literals: the first ones with commas between them, and the last ones. */
  readonly chunks: string[];
  readonly literals: string[];
  leftBytes: number;
};

/** Characters that no literal merges with on either side: space ( ) , ; = */
function separates(code: number): boolean {
  return (
    isSpaceCode(code) ||
    code === 0x28 ||
    code === 0x29 ||
    code === 0x2c ||
    code === 0x3b ||
    code === 0x3d
  );
}

/** Behind a point or an @ it would be a name. */
function canBeIn(before: number): boolean {
  return before !== tokenKinds.dot && before !== tokenKinds.userAt;
}

function isIn(sql: string, { start, end }: Lexer): boolean {
  return end - start === 2 && sql.slice(start, end).toUpperCase() === 'IN';
}

/**
 * Where another statement begins, or -1: the server drops semicolons and spaces at the very end; anything else behind a
 * semicolon is a second statement.
 */
function findSecondStatement(sql: string, from: number): number {
  for (let at = from; at < sql.length; at += 1) {
    const code = sql.charCodeAt(at);
    if (code !== 0x3b && !isSpaceCode(code)) return at;
  }
  return -1;
}

/** As JSON, so that nothing in it can be taken for a part of the message. */
function quoteName(name: string): string {
  return JSON.stringify(name.slice(0, maxNameUnits));
}

function failed(code: FailureCode, message: string, offset: number | null = null): Unbound {
  return { ok: false, failure: { code, message, offset } };
}

// Puts parameter values into the text of one statement, as literals.
import type { FailureCode } from '../failure-codes.ts';
import { allAtOnce, type Pieces, stepsInPiece } from '../pieces.ts';
import { describeDoubt, isSpaceCode, Lexer, tokenKinds } from './lexer.ts';
import { encodeLiteral, type Literal } from './literal.ts';
import { placeLiteral } from './placement.ts';

/**
 * Values for `?` in order, or for `:name` by name: strings, numbers (or LosslessNumbers), booleans, null,
 * {"$binary": base64}, and arrays of these for `IN (?)`.
 */
export type Parameters = readonly unknown[] | Readonly<Record<string, unknown>>;

/** The request's name for its parameters, for messages. */
export type ParametersKey = 'PARAMS' | 'params';

/**
 * Why parameters cannot be bound. `message` is for people: it names the parameter, and contains no value.
 * `offset` is the place in the text, in UTF-16 units; null: there is no single one.
 */
export type BindFailure = {
  readonly code: FailureCode;
  readonly message: string;
  readonly offset: number | null;
};

/** The text with its values, or why they cannot be bound. */
export type Bound = { readonly ok: true; readonly sql: string } | Unbound;

type Unbound = { readonly ok: false; readonly failure: BindFailure };

/**
 * The content of `IN (…)` for an empty array: nothing equals it, and everything differs from it, NULL included.
 * (`IN (NULL)` would make NOT IN match nothing too, and MySQL allows no LIMIT here.) A derived table, because with it the servers
 * see through a semi-join that nothing can match, and read no row. With `FROM DUAL` they scan the other table
 * (seen on MySQL 9.7, and on MariaDB 10.11, which still scans it in an UPDATE or DELETE of one table).
 */
const emptyList = 'SELECT NULL FROM (SELECT NULL) AS empty_list WHERE FALSE';
/** MySQL's own limit for a prepared statement. An array for `IN (?)` counts as one. */
export const maxParameters = 65_535;
/** Longest part of a client's name in a message. */
const maxNameUnits = 64;
/** For clients that write the placeholders of another driver. */
const noPlaceholder =
  '; placeholders are ? or :name, never %s or $1: an array is for ? (outside of quotes), an object for :name';

/**
 * Binds `params` to the placeholders of `sql`, which must be one statement. Every value is used;
 * their number must be right, and names match exactly. An array must be alone in the parentheses of an IN. If another sql_mode or server
 * would cut the text's literals elsewhere, it fails, so that no value can end up inside a literal. Never throws: values are
 * counted before they are inserted, and a named value is encoded once.
 * @param maxBytes longest text, as UTF-8; at most the longest string that Node allows
 */
export function bind(
  sql: string,
  params: Parameters,
  maxBytes: number,
  key: ParametersKey = 'PARAMS',
): Bound {
  return allAtOnce(bindInPieces(sql, params, maxBytes, key));
}

/** The same in pieces. */
export function* bindInPieces(
  sql: string,
  params: Parameters,
  maxBytes: number,
  key: ParametersKey,
): Pieces<Bound> {
  if (hasNothingToBind(sql, params, maxBytes)) return { ok: true, sql };
  const binding = new Binding(sql, params, maxBytes, key);
  for (;;) {
    const bound = binding.readOn(stepsInPiece);
    if (bound !== null) return bound;
    yield;
  }
}

/** The most bytes of UTF-8 for a UTF-16 unit. */
const maxUnitBytes = 3;

/** Whether the text is bound as it is, as its characters show. Reading its tokens would cost as much as its analysis. */
function hasNothingToBind(sql: string, params: Parameters, maxBytes: number): boolean {
  if (!Array.isArray(params) || params.length > 0 || sql.includes('?')) return false;
  return !sql.includes(';') && maxUnitBytes * sql.length <= maxBytes;
}

class Binding {
  readonly #sql: string;
  readonly #positional: readonly unknown[] | null;
  readonly #named: Readonly<Record<string, unknown>> | null;
  readonly #key: ParametersKey;
  readonly #lexer: Lexer;
  readonly #used: Set<string> | null;
  /** Encoded values by name. */
  readonly #literals = new Map<string, string>();
  readonly #maxBytes: number;
  #count = 0;
  /** Offset of the first `?` without a value. */
  #missingOffset: number | null = null;
  #out = '';
  /** Bytes as UTF-8; literals are ASCII. */
  #outBytes = 0;
  #copied = 0;
  #before: number = tokenKinds.end;
  #afterIn = false;
  #inList = false;
  /** The array after which a parenthesis must close. */
  #list: Value | null = null;
  #isAfterOrderBy = false;
  /** A string alone behind ORDER BY, if the sort key ends with it. */
  #sortKey: Value | null = null;
  /** The list in progress; null: there is none. */
  #items: ListItems | null = null;
  /** The position after the first semicolon; -1: there is none. */
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

  /** Reads on by at most this many tokens, or values of a list; null: there are more. */
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
        if (this.#sortKey !== null) return this.#sortsNothing(this.#sortKey);
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
    if (this.#sortKey !== null && endsSortKey(this.#sql, lexer, kind))
      return this.#sortsNothing(this.#sortKey);
    this.#sortKey = null;
    if (kind === tokenKinds.semicolon && this.#ended < 0) this.#ended = lexer.end;
    const found = this.#valueAt(kind);
    const failed = found === null ? null : found.ok ? this.#take(found) : found;
    if (failed !== null) return failed;
    if (this.#isAfterOrderBy && found?.ok === true && typeof found.given === 'string')
      this.#sortKey = found;
    this.#isAfterOrderBy = kind === tokenKinds.word && isByOfOrder(this.#sql, lexer);
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

  /** Encodes the next value of a list; after the last one, puts the list into the text. */
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
    // V8 would flatten a text of a million appends at once when it is first read.
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
      const message = `${this.#key} need one statement only; another begins at offset ${second}`;
      return failed('PARAMS_SEVERAL', message, second);
    }
    const unused = this.#unused();
    if (unused !== null) return unused;
    const rest = this.#sql.slice(this.#copied);
    if (this.#outBytes + Buffer.byteLength(rest) > this.#maxBytes) return this.#tooLarge();
    return { ok: true, sql: this.#out + rest };
  }

  /** No value was inserted: it does not matter where literals end. */
  get #isUntouched(): boolean {
    const given = this.#positional ?? Object.keys(this.#named ?? {});
    return given.length === 0 && this.#count === 0;
  }

  #unused(): Unbound | null {
    if (this.#positional !== null) {
      const [wanted, given] = [this.#count, this.#positional.length];
      if (wanted === given) return null;
      const missing = this.#missingOffset;
      const first =
        missing === null ? '' : `; the first one without a value is at offset ${missing}`;
      const none = wanted === 0 ? noPlaceholder : '';
      return failed(
        'PARAMS_COUNT',
        `the statement has ${wanted} placeholder(s), ${this.#key} has ${given} value(s)${first}${none}`,
        missing,
      );
    }
    for (const name of Object.keys(this.#named ?? {})) {
      if (this.#used?.has(name) === true) continue;
      const message = `${this.#key} contains a name that the statement does not use: ${quoteName(name)}`;
      return failed('PARAMS_NAME', this.#count === 0 ? `${message}${noPlaceholder}` : message);
    }
    return null;
  }

  /** The value for the lexer's token; null: it is not a placeholder. */
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

  /** Null: with an array only `?` is a placeholder. */
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

  /** Null: it is a list, whose values are encoded one after another. */
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

  /** Longest literal that fits. */
  get #leftBytes(): number {
    return this.#maxBytes - this.#outBytes;
  }

  #refuse(literal: Literal & { readonly ok: false }, value: Value, index: number | null): Unbound {
    if (literal.reason === 'too large') return this.#tooLarge();
    const item = index === null ? '' : `[${index}]`;
    return failed('PARAMS_VALUE', `${this.#nameOf(value)}${item} ${literal.fault}`, value.offset);
  }

  #misplaced(value: Value): Unbound {
    const message = `${this.#nameOf(value)} is an array, which must be alone in the parentheses of IN (?) or IN (:name); it is used at offset ${value.offset}`;
    return failed('PARAMS_VALUE', message, value.offset);
  }

  #sortsNothing(value: Value): Unbound {
    const message = `${this.#nameOf(value)} is a string behind ORDER BY, which would sort nothing: a value is not the name of a column. Write the name and ASC or DESC in the SQL text (with dbhttpd/client: sql.id)`;
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
    const message = `the statement with its ${this.#key} in it would be longer than ${this.#maxBytes} bytes, the database's limit (max_allowed_packet)`;
    return failed('STATEMENT_TOO_LARGE', message);
  }

  /** Replaces the placeholder by the literal, separated from a word, quote or operator that it could merge with. */
  #insert(literal: string): void {
    const { start, end } = this.#lexer;
    const { before, after } = placeLiteral(this.#sql, start, end, literal.startsWith('-'));
    const text = this.#sql.slice(this.#copied, start);
    this.#copied = end;
    this.#outBytes += Buffer.byteLength(text) + before.length + literal.length + after.length;
    // Strings have a maximal length. V8 does not flatten a string that is only appended to before its use.
    if (this.#outBytes <= this.#maxBytes) this.#out += text + before + literal + after;
  }
}

/** The value of a placeholder. */
type Value = {
  readonly ok: true;
  readonly given: unknown;
  /** Its index or name among the parameters. */
  readonly at: number | string;
  /** The placeholder's. */
  readonly offset: number;
};

/** A list that is being encoded. */
type ListItems = {
  readonly value: Value;
  readonly given: readonly unknown[];
  /** Number of encoded values. */
  count: number;
  /** The literals: full chunks, joined by commas, and the last ones. */
  readonly chunks: string[];
  readonly literals: string[];
  leftBytes: number;
};

/** After a dot or an @ it would be a name. */
function canBeIn(before: number): boolean {
  return before !== tokenKinds.dot && before !== tokenKinds.userAt;
}

function isIn(sql: string, { start, end }: Lexer): boolean {
  return end - start === 2 && sql.slice(start, end).toUpperCase() === 'IN';
}

/** Whether the word is the BY of ORDER BY. A comment between the two is not looked through. */
function isByOfOrder(sql: string, { start, end }: Lexer): boolean {
  if (end - start !== 2 || !/^by$/i.test(sql.slice(start, end))) return false;
  return /(?:^|[^\w$.@])order\s+$/i.test(sql.slice(Math.max(0, start - maxOrderLength), start));
}

/** ORDER and spaces. */
const maxOrderLength = 32;
const sortKeyEnds = new Set(['ASC', 'DESC', 'LIMIT']);

/** Whether the token ends a sort key, so that what is before it is all of it. */
function endsSortKey(sql: string, { start, end }: Lexer, kind: number): boolean {
  if (kind === tokenKinds.close || kind === tokenKinds.semicolon) return true;
  if (kind === tokenKinds.word) return sortKeyEnds.has(sql.slice(start, end).toUpperCase());
  return sql.charCodeAt(start) === 0x2c;
}

/**
 * The offset at which another statement begins, or -1. The server drops semicolons and spaces at the very end; anything else after a semicolon is a
 * second statement.
 */
function findSecondStatement(sql: string, from: number): number {
  for (let at = from; at < sql.length; at += 1) {
    const code = sql.charCodeAt(at);
    if (code !== 0x3b && !isSpaceCode(code)) return at;
  }
  return -1;
}

/** Quotes as JSON, so that no part of it looks like the message. */
function quoteName(name: string): string {
  return JSON.stringify(name.slice(0, maxNameUnits));
}

function failed(code: FailureCode, message: string, offset: number | null = null): Unbound {
  return { ok: false, failure: { code, message, offset } };
}

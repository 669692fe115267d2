// Puts parameter values into the text of one statement, as literals.
// Must not know where the request came from, nor run anything.
import type { FailureCode } from '../failure-codes.ts';
import { isSpaceCode } from './characters.ts';
import { describeDoubt } from './doubt.ts';
import { Lexer } from './lexer.ts';
import { type BindFailure, encodeLiteral, type Literal, tooLarge } from './literal.ts';
import { tokenKinds } from './tokens.ts';

/** Values for `?` in order, or for `:name` by name. */
export type Parameters = readonly unknown[] | Readonly<Record<string, unknown>>;

/** What is accepted beside plain values. */
export type BindOptions = {
  /** An array is the list of `IN (?)`. */
  readonly allowLists: boolean;
  /** {"$binary": "<base64>"} is a binary string. */
  readonly allowBinary: boolean;
};

/** The text with its values in it, or why they cannot be put there. */
export type Bound =
  | { readonly ok: true; readonly sql: string }
  | { readonly ok: false; readonly failure: BindFailure };

const plainValues: BindOptions = { allowLists: false, allowBinary: false };

/**
 * Binds `params` to the placeholders of `sql`, which must be one statement. Every value is used;
 * numbers are counted and names matched exactly. Text whose literals another sql_mode or server would
 * cut elsewhere is refused, so that no value can end up inside a literal. Never throws: what is put in is counted
 * before it is, and a named value is encoded once, however often it is used.
 * @param mostBytes how long the text may become, as UTF-8
 */
export function bind(
  sql: string,
  params: Parameters,
  mostBytes: number,
  options: BindOptions = plainValues,
): Bound {
  return new Binding(sql, params, mostBytes, options).run();
}

class Binding {
  readonly #sql: string;
  readonly #positional: readonly unknown[] | null;
  readonly #named: Readonly<Record<string, unknown>> | null;
  readonly #options: BindOptions;
  readonly #lexer: Lexer;
  readonly #used: Set<string> | null;
  /** By name. */
  readonly #literals = new Map<string, Literal>();
  readonly #mostBytes: number;
  #count = 0;
  #out = '';
  /** As UTF-8; literals are ASCII. */
  #outBytes = 0;
  #copied = 0;

  constructor(sql: string, params: Parameters, mostBytes: number, options: BindOptions) {
    this.#sql = sql;
    this.#mostBytes = mostBytes;
    this.#positional = Array.isArray(params) ? params : null;
    this.#named = Array.isArray(params) ? null : (params as Readonly<Record<string, unknown>>);
    this.#used = this.#named === null ? null : new Set();
    this.#options = options;
    this.#lexer = new Lexer(sql);
  }

  run(): Bound {
    const lexer = this.#lexer;
    let inList = false;
    let afterIn = false;
    let listMustClose = false;
    let ended = false;
    for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
      if (listMustClose && kind !== tokenKinds.close) return listMisplaced();
      listMustClose = false;
      if (kind === tokenKinds.semicolon) ended = true;
      if (kind === tokenKinds.placeholder || kind === tokenKinds.namedPlaceholder) {
        const value = kind === tokenKinds.placeholder ? this.#nextValue() : this.#namedValue();
        if (value !== null) {
          if (!value.ok) return value;
          listMustClose = Array.isArray(value.given);
          if (listMustClose && !inList) return listMisplaced();
          const literal = this.#literalOf(kind, value.given);
          if (!literal.ok) return literal;
          this.#insert(literal.sql);
          if (this.#outBytes > this.#mostBytes) return tooLarge(this.#mostBytes);
        }
      }
      inList = afterIn && kind === tokenKinds.open;
      afterIn = kind === tokenKinds.word && isIn(this.#sql, lexer.start, lexer.end);
    }
    if (listMustClose) return listMisplaced();
    return this.#finish(ended);
  }

  #finish(ended: boolean): Bound {
    const doubt = describeDoubt(this.#lexer);
    if (doubt !== null) return failed('PARAMS_TEXT', doubt);
    if (ended && hasSecondStatement(this.#sql)) {
      return failed('PARAMS_SEVERAL', 'PARAMS go with one statement; this text holds several');
    }
    const unused = this.#unused();
    if (unused !== null) return unused;
    const rest = this.#sql.slice(this.#copied);
    if (this.#outBytes + Buffer.byteLength(rest) > this.#mostBytes)
      return tooLarge(this.#mostBytes);
    return { ok: true, sql: this.#out + rest };
  }

  #unused(): Bound | null {
    if (this.#positional !== null) {
      if (this.#count === this.#positional.length) return null;
      return failed(
        'PARAMS_COUNT',
        `the statement has ${this.#count} placeholder(s), PARAMS has ${this.#positional.length} value(s)`,
      );
    }
    for (const name of Object.keys(this.#named ?? {})) {
      if (this.#used?.has(name) !== true)
        return failed('PARAMS_NAME', 'PARAMS holds a name that the statement does not use');
    }
    return null;
  }

  #nextValue(): Given {
    if (this.#positional === null) {
      return failed(
        'PARAMS_COUNT',
        'PARAMS is an object, so placeholders are written :name, not ?',
      );
    }
    const at = this.#count++;
    // A missing value is reported at the end, with the full count.
    return { ok: true, given: at < this.#positional.length ? this.#positional[at] : null };
  }

  /** Null when names are none of our business: with an array only `?` is a placeholder. */
  #namedValue(): Given | null {
    if (this.#named === null) return null;
    const name = this.#name;
    if (!Object.hasOwn(this.#named, name)) {
      return failed('PARAMS_NAME', `PARAMS has no value for :${name.slice(0, 64)}`);
    }
    this.#used?.add(name);
    return { ok: true, given: this.#named[name] };
  }

  /** The name of the placeholder at which the lexer stands. */
  get #name(): string {
    return this.#sql.slice(this.#lexer.start + 1, this.#lexer.end);
  }

  #literalOf(kind: number, value: unknown): Literal {
    if (kind === tokenKinds.placeholder) return this.#encode(value);
    const name = this.#name;
    const known = this.#literals.get(name);
    if (known !== undefined) return known;
    const literal = this.#encode(value);
    this.#literals.set(name, literal);
    return literal;
  }

  #encode(value: unknown): Literal {
    const { allowLists, allowBinary } = this.#options;
    if (!Array.isArray(value) || !allowLists) {
      return encodeLiteral(value, allowBinary, this.#mostBytes);
    }
    if (value.length === 0) return failed('PARAMS_VALUE', 'the list for IN (?) is empty');
    const parts: string[] = [];
    let length = -1;
    for (const item of value) {
      const literal = encodeLiteral(item, allowBinary, this.#mostBytes);
      if (!literal.ok) return literal;
      length += literal.sql.length + 1;
      if (length > this.#mostBytes) return tooLarge(this.#mostBytes);
      parts.push(literal.sql);
    }
    return { ok: true, sql: parts.join(',') };
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
    if (this.#outBytes <= this.#mostBytes) this.#out += text + opening + literal + closing;
  }
}

type Given = { readonly ok: true; readonly given: unknown } | (Bound & { readonly ok: false });

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

function isIn(sql: string, start: number, end: number): boolean {
  return end - start === 2 && sql.slice(start, end).toUpperCase() === 'IN';
}

/** The server drops semicolons and spaces at the very end; anything else behind a semicolon is a second statement. */
function hasSecondStatement(sql: string): boolean {
  const lexer = new Lexer(sql);
  while (lexer.next() !== tokenKinds.semicolon);
  for (let at = lexer.end; at < sql.length; at += 1) {
    const code = sql.charCodeAt(at);
    if (code !== 0x3b && !isSpaceCode(code)) return true;
  }
  return false;
}

function listMisplaced(): Bound & { readonly ok: false } {
  return failed(
    'PARAMS_VALUE',
    'an array is no parameter value: write one placeholder for each value',
  );
}

function failed(code: FailureCode, message: string): Bound & { readonly ok: false } {
  return { ok: false, failure: { code, message } };
}

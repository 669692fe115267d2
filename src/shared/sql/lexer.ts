// Cuts SQL text into the tokens MySQL and MariaDB see, in one linear pass.
// Must not know what the statements mean, nor anything of connections or HTTP.
import { characterClasses, classOf, isWordCode } from './characters.ts';
import { endOfBlockComment, endOfLineComment, inspectSpecialComment } from './comments.ts';
import { tokenKinds } from './tokens.ts';

/** Why a server may cut the same text differently; bits of `Lexer.doubt`. */
export const doubts = { backslash: 1, nul: 2, comment: 4, dollar: 8 } as const;

/** How the session reads a backslash in '…' and in "…". NO_BACKSLASH_ESCAPES turns both off, ANSI_QUOTES the second. */
export type Escapes = { readonly single: boolean; readonly double: boolean };
/** How a session reads them unless its sql_mode says otherwise. */
export const defaultEscapes: Escapes = { single: true, double: true };

/** Of a longer literal what follows is searched, and not looked at character by character. */
const shortLiteral = 64;

/** Walks over one SQL text: call `next()` until it answers `end`; never throws. */
export class Lexer {
  kind: number = tokenKinds.end;
  start = 0;
  end = 0;
  /** Bits of `doubts` found so far. */
  doubt = 0;
  /** A literal, quoted name or comment was still open at the end of the text. */
  unterminated = false;
  readonly #sql: string;
  readonly #escapes: Escapes;
  /** Where the next ones stand, as far as was looked. */
  #backslashAt = -1;
  #nulAt = -1;

  constructor(sql: string, escapes: Escapes = defaultEscapes) {
    this.#sql = sql;
    this.#escapes = escapes;
  }

  /** Moves to the next token that is neither space nor ordinary comment, and answers its kind. */
  next(): number {
    const sql = this.#sql;
    const length = sql.length;
    let at = this.end;
    while (at < length) {
      const code = sql.charCodeAt(at);
      const found = classOf(code);
      if (found === characterClasses.space) {
        at += 1;
        continue;
      }
      this.start = at;
      if (found === characterClasses.letter || found === characterClasses.digit)
        return this.#word(at, found);
      if (found === tokenKinds.operator) {
        const after = this.#comment(code, at);
        if (after < 0) return this.#settle(tokenKinds.operator, at + 1);
        if (this.kind === tokenKinds.executableComment)
          return this.#settle(tokenKinds.executableComment, after);
        at = after;
        continue;
      }
      return this.#punctuation(found, code, at);
    }
    this.start = length;
    return this.#settle(tokenKinds.end, length);
  }

  #settle(kind: number, end: number): number {
    this.kind = kind;
    this.end = end;
    return kind;
  }

  #word(at: number, first: number): number {
    const sql = this.#sql;
    let end = at + 1;
    let dollars = sql.charCodeAt(at) === 0x24 ? 1 : 0;
    for (; end < sql.length; end += 1) {
      const code = sql.charCodeAt(end);
      if (!isWordCode(code)) break;
      if (dollars > 0 && code === 0x24) dollars += 1;
    }
    // MySQL 9 reads $tag$ … $tag$ as a string.
    if (dollars > 1) this.doubt |= doubts.dollar;
    return this.#settle(
      first === characterClasses.digit ? tokenKinds.number : tokenKinds.word,
      end,
    );
  }

  #punctuation(found: number, code: number, at: number): number {
    if (found === tokenKinds.string) return this.#quoted(tokenKinds.string, code, at);
    if (found === tokenKinds.quotedName) return this.#quoted(tokenKinds.quotedName, code, at);
    if (found === tokenKinds.userAt && this.#sql.charCodeAt(at + 1) === 0x40) {
      return this.#settle(tokenKinds.systemAt, at + 2);
    }
    if (found === tokenKinds.colon) return this.#colon(at);
    return this.#settle(found, at + 1);
  }

  /** A colon directly behind a name, a literal or another colon (label:LOOP, a::b) starts no placeholder. */
  #colon(at: number): number {
    const sql = this.#sql;
    const following = at + 1 < sql.length ? sql.charCodeAt(at + 1) : 0;
    if (following === 0x3d) return this.#settle(tokenKinds.operator, at + 2);
    const touching =
      at > 0 &&
      this.end === at &&
      this.kind <= tokenKinds.quotedName &&
      this.kind !== tokenKinds.end;
    const doubled = at > 0 && sql.charCodeAt(at - 1) === 0x3a;
    if (
      touching ||
      doubled ||
      classOf(following) !== characterClasses.letter ||
      following === 0x24
    ) {
      return this.#settle(tokenKinds.colon, at + 1);
    }
    let end = at + 2;
    while (end < sql.length && isWordCode(sql.charCodeAt(end))) end += 1;
    return this.#settle(tokenKinds.namedPlaceholder, end);
  }

  #quoted(kind: number, quote: number, from: number): number {
    const sql = this.#sql;
    const escaping = quote === 0x27 ? this.#escapes.single : quote === 0x22 && this.#escapes.double;
    for (let at = from + 1; at < sql.length; at += 1) {
      if (at - from > shortLiteral) at = this.#nextSpecial(quote, at);
      const code = sql.charCodeAt(at);
      if (code === quote) {
        if (sql.charCodeAt(at + 1) !== quote) return this.#settle(kind, at + 1);
        at += 1;
      } else if (code === 0x5c && kind === tokenKinds.string) {
        // Both readings stay in step until a backslash stands before the quote itself.
        if (sql.charCodeAt(at + 1) === quote) this.doubt |= doubts.backslash;
        if (escaping) at += 1;
      } else if (code === 0 && quote !== 0x27) {
        // The server's scan of a quoted identifier stops at NUL.
        this.doubt |= doubts.nul;
      }
    }
    this.unterminated = true;
    return this.#settle(kind, sql.length);
  }

  /** Where the next character stands that means something in a literal. One of 15 MB took 60 ms character by character. */
  #nextSpecial(quote: number, from: number): number {
    const sql = this.#sql;
    if (this.#backslashAt < from) this.#backslashAt = find(sql, '\\', from);
    const closing = Math.min(find(sql, String.fromCharCode(quote), from), this.#backslashAt);
    if (quote === 0x27) return closing;
    if (this.#nulAt < from) this.#nulAt = find(sql, '\0', from);
    return Math.min(closing, this.#nulAt);
  }

  /** The position behind the comment that starts here, or -1; `kind` tells whether it is executable. */
  #comment(code: number, at: number): number {
    const sql = this.#sql;
    this.kind = tokenKinds.operator;
    if (code === 0) this.doubt |= doubts.nul;
    const line = endOfLineComment(sql, code, at);
    if (line >= 0) {
      if (sql.charCodeAt(line) === 0) this.doubt |= doubts.nul;
      return line;
    }
    if (code !== 0x2f || sql.charCodeAt(at + 1) !== 0x2a) return -1;
    const end = endOfBlockComment(sql, at);
    const special = inspectSpecialComment(sql, at, end < 0 ? sql.length + 2 : end);
    if (special.executable) this.kind = tokenKinds.executableComment;
    if (!special.plain) this.doubt |= doubts.comment;
    if (end >= 0) return end;
    this.unterminated = true;
    return sql.length;
  }
}

/** Where a character stands next; the end of the text where it does not. */
function find(sql: string, character: string, from: number): number {
  const at = sql.indexOf(character, from);
  return at < 0 ? sql.length : at;
}

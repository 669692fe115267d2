// Cuts SQL text into the tokens MySQL and MariaDB see, in one linear pass.
// Must not know what the statements mean, nor anything of connections or HTTP.
import { classOf, DIGIT_CLASS, isWordCode, LETTER_CLASS, SPACE_CLASS } from './characters.ts';
import { endOfBlockComment, endOfLineComment, inspectSpecialComment } from './comments.ts';
import {
  COLON,
  END,
  EXECUTABLE_COMMENT,
  NAMED_PLACEHOLDER,
  NUMBER,
  OPERATOR,
  QUOTED_NAME,
  STRING,
  SYSTEM_AT,
  USER_AT,
  WORD,
} from './tokens.ts';

/** Why a server may cut the same text differently; bits of `Lexer.doubt`. */
export const DOUBT_BACKSLASH = 1;
export const DOUBT_NUL = 2;
export const DOUBT_COMMENT = 4;
export const DOUBT_DOLLAR = 8;

/** How the session reads a backslash in '…' and in "…". NO_BACKSLASH_ESCAPES turns both off, ANSI_QUOTES the second. */
export type Escapes = { readonly single: boolean; readonly double: boolean };
export const DEFAULT_ESCAPES: Escapes = { single: true, double: true };

/** Walks over one SQL text: call `next()` until it answers END; never throws. */
export class Lexer {
  kind = END;
  start = 0;
  end = 0;
  /** DOUBT_… bits found so far. */
  doubt = 0;
  /** A literal, quoted name or comment was still open at the end of the text. */
  unterminated = false;
  private readonly sql: string;
  private readonly escapes: Escapes;

  constructor(sql: string, escapes: Escapes = DEFAULT_ESCAPES) {
    this.sql = sql;
    this.escapes = escapes;
  }

  /** Moves to the next token that is neither space nor ordinary comment, and answers its kind. */
  next(): number {
    const sql = this.sql;
    const length = sql.length;
    let at = this.end;
    while (at < length) {
      const code = sql.charCodeAt(at);
      const found = classOf(code);
      if (found === SPACE_CLASS) {
        at++;
        continue;
      }
      this.start = at;
      if (found === LETTER_CLASS || found === DIGIT_CLASS) return this.word(at, found);
      if (found === OPERATOR) {
        const after = this.comment(code, at);
        if (after < 0) return this.settle(OPERATOR, at + 1);
        if (this.kind === EXECUTABLE_COMMENT) return this.settle(EXECUTABLE_COMMENT, after);
        at = after;
        continue;
      }
      return this.punctuation(found, code, at);
    }
    this.start = length;
    return this.settle(END, length);
  }

  private settle(kind: number, end: number): number {
    this.kind = kind;
    this.end = end;
    return kind;
  }

  private word(at: number, first: number): number {
    const sql = this.sql;
    let end = at + 1;
    let dollars = sql.charCodeAt(at) === 0x24 ? 1 : 0;
    for (; end < sql.length; end++) {
      const code = sql.charCodeAt(end);
      if (!isWordCode(code)) break;
      if (dollars > 0 && code === 0x24) dollars++;
    }
    // MySQL 9 reads $tag$ … $tag$ as a string.
    if (dollars > 1) this.doubt |= DOUBT_DOLLAR;
    return this.settle(first === DIGIT_CLASS ? NUMBER : WORD, end);
  }

  private punctuation(found: number, code: number, at: number): number {
    if (found === STRING) return this.quoted(STRING, code, at);
    if (found === QUOTED_NAME) return this.quoted(QUOTED_NAME, code, at);
    if (found === USER_AT && this.sql.charCodeAt(at + 1) === 0x40) {
      return this.settle(SYSTEM_AT, at + 2);
    }
    if (found === COLON) return this.colon(at);
    return this.settle(found, at + 1);
  }

  /** A colon directly behind a name, a literal or another colon (label:LOOP, a::b) starts no placeholder. */
  private colon(at: number): number {
    const sql = this.sql;
    const following = at + 1 < sql.length ? sql.charCodeAt(at + 1) : 0;
    if (following === 0x3d) return this.settle(OPERATOR, at + 2);
    const touching = at > 0 && this.end === at && this.kind <= QUOTED_NAME && this.kind !== END;
    const doubled = at > 0 && sql.charCodeAt(at - 1) === 0x3a;
    if (touching || doubled || classOf(following) !== LETTER_CLASS || following === 0x24) {
      return this.settle(COLON, at + 1);
    }
    let end = at + 2;
    while (end < sql.length && isWordCode(sql.charCodeAt(end))) end++;
    return this.settle(NAMED_PLACEHOLDER, end);
  }

  private quoted(kind: number, quote: number, from: number): number {
    const sql = this.sql;
    const escaping = quote === 0x27 ? this.escapes.single : quote === 0x22 && this.escapes.double;
    for (let at = from + 1; at < sql.length; at++) {
      const code = sql.charCodeAt(at);
      if (code === quote) {
        if (sql.charCodeAt(at + 1) !== quote) return this.settle(kind, at + 1);
        at++;
      } else if (code === 0x5c && kind === STRING) {
        // Both readings stay in step until a backslash stands before the quote itself.
        if (sql.charCodeAt(at + 1) === quote) this.doubt |= DOUBT_BACKSLASH;
        if (escaping) at++;
      } else if (code === 0 && quote !== 0x27) {
        // The server's scan of a quoted identifier stops at NUL.
        this.doubt |= DOUBT_NUL;
      }
    }
    this.unterminated = true;
    return this.settle(kind, sql.length);
  }

  /** The position behind the comment that starts here, or -1; `kind` tells whether it is executable. */
  private comment(code: number, at: number): number {
    const sql = this.sql;
    this.kind = OPERATOR;
    if (code === 0) this.doubt |= DOUBT_NUL;
    const line = endOfLineComment(sql, code, at);
    if (line >= 0) {
      if (sql.charCodeAt(line) === 0) this.doubt |= DOUBT_NUL;
      return line;
    }
    if (code !== 0x2f || sql.charCodeAt(at + 1) !== 0x2a) return -1;
    const end = endOfBlockComment(sql, at);
    const special = inspectSpecialComment(sql, at, end < 0 ? sql.length + 2 : end);
    if (special.executable) this.kind = EXECUTABLE_COMMENT;
    if (!special.plain) this.doubt |= DOUBT_COMMENT;
    if (end >= 0) return end;
    this.unterminated = true;
    return sql.length;
  }
}

// Cuts SQL text into the tokens that MySQL and MariaDB see, in one linear pass.

/** A kind for each token; small numbers, so that a character's class fits into a byte. */
export const tokenKinds = {
  end: 0,
  word: 1,
  /** Starts with a digit: a number, or an identifier such as `1a`. */
  number: 2,
  /** '…' or "…" (the latter is an identifier under ANSI_QUOTES). */
  string: 3,
  quotedName: 4,
  open: 5,
  close: 6,
  dot: 7,
  semicolon: 8,
  colon: 9,
  /** `?` */
  placeholder: 10,
  /** `:name`; the token includes the colon. */
  namedPlaceholder: 11,
  /** `@` of a user variable or an account. */
  userAt: 12,
  /** `@@` of a system variable. */
  systemAt: 13,
  /** A whole comment of the `/*!` or `/*M!` kind: SQL to some servers, a comment to others. */
  executableComment: 14,
  operator: 15,
} as const;

/** Classes of characters that are not a token of their own. */
export const characterClasses = { space: 100, letter: 101, digit: 102 } as const;
const asciiClasses = classifyCharacters();

function classifyCharacters(): Uint8Array {
  const classes = new Uint8Array(128).fill(tokenKinds.operator);
  // MySQL's own idea of space: tab, line feed, vertical tab, form feed, carriage return, blank.
  for (const code of [9, 10, 11, 12, 13, 32]) classes[code] = characterClasses.space;
  for (let code = 0x30; code <= 0x39; code += 1) classes[code] = characterClasses.digit;
  for (let code = 0x41; code <= 0x5a; code += 1) classes[code] = characterClasses.letter;
  for (let code = 0x61; code <= 0x7a; code += 1) classes[code] = characterClasses.letter;
  classes[0x24] = characterClasses.letter;
  classes[0x5f] = characterClasses.letter;
  classes[0x22] = tokenKinds.string;
  classes[0x27] = tokenKinds.string;
  classes[0x60] = tokenKinds.quotedName;
  classes[0x28] = tokenKinds.open;
  classes[0x29] = tokenKinds.close;
  classes[0x2e] = tokenKinds.dot;
  classes[0x3b] = tokenKinds.semicolon;
  classes[0x3a] = tokenKinds.colon;
  classes[0x3f] = tokenKinds.placeholder;
  classes[0x40] = tokenKinds.userAt;
  return classes;
}

/** The class of a UTF-16 code unit; all that is not ASCII belongs to words, as in a utf8mb4 session. */
export function classOf(code: number): number {
  return code < 128 ? (asciiClasses[code] as number) : characterClasses.letter;
}

/** True for a character that would merge with a word written directly before or after it. */
export function isWordCode(code: number): boolean {
  const found = classOf(code);
  return found === characterClasses.letter || found === characterClasses.digit;
}

/** True for what MySQL skips between tokens; other Unicode spaces are word characters to it. */
export function isSpaceCode(code: number): boolean {
  return code < 128 && asciiClasses[code] === characterClasses.space;
}

/** The end of the text for the server, which drops spaces and semicolons at the end before it does anything else. */
export function endOfText(sql: string): number {
  let end = sql.length;
  while (end > 0) {
    const code = sql.charCodeAt(end - 1);
    if (code !== 0x3b && !isSpaceCode(code)) break;
    end -= 1;
  }
  return end;
}

/** The meaning of a block comment for different servers. */
export type SpecialComment = {
  /** `/*! …` or `/*M! …`: SQL to a server of the right kind and version. */
  readonly executable: boolean;
  /** Every server ends it at the same place, and nothing in it matters. */
  readonly plain: boolean;
};

const quotes = '\'"`';
const executableRisks = '\'"`#-?:;$\\\0/';
const ordinary: SpecialComment = { executable: false, plain: true };

/** The end of a `#` or `-- ` comment starting at `at`, its line feed excluded; -1 if none starts there. */
export function endOfLineComment(sql: string, code: number, at: number): number {
  if (code !== 0x23 && !(code === 0x2d && startsDashComment(sql, at))) return -1;
  // A NUL ends a line comment too; the caller sees it there.
  for (let end = at + 1; end < sql.length; end += 1) {
    const found = sql.charCodeAt(end);
    if (found === 0x0a || found === 0) return end;
  }
  return sql.length;
}

/** `--` counts only before a blank, a control character or the end of the text. */
function startsDashComment(sql: string, at: number): boolean {
  if (sql.charCodeAt(at + 1) !== 0x2d) return false;
  if (at + 2 >= sql.length) return true;
  const following = sql.charCodeAt(at + 2);
  return following <= 0x20 || following === 0x7f;
}

/** The position after the block comment that starts at `at`; -1 if it is never closed. */
export function endOfBlockComment(sql: string, at: number): number {
  const close = sql.indexOf('*/', at + 2);
  return close < 0 ? -1 : close + 2;
}

/** Distinguishes ordinary comments from executable ones and optimizer hints. @param end after its first end mark */
export function inspectSpecialComment(sql: string, at: number, end: number): SpecialComment {
  const third = sql.charCodeAt(at + 2);
  if (third === 0x2b) return { executable: false, plain: !hasAny(sql, at + 3, end, quotes) };
  const mariadb = (third | 0x20) === 0x6d && sql.charCodeAt(at + 3) === 0x21;
  if (third !== 0x21 && !mariadb) return ordinary;
  // A server that reads it as SQL ends it later if a literal or a nested comment contains the first end mark. A server that skips it for
  // its version ends it later if a nested comment does.
  return { executable: true, plain: !hasAny(sql, at + 3, end - 2, executableRisks) };
}

function hasAny(sql: string, from: number, to: number, characters: string): boolean {
  for (let at = from; at < to; at += 1) {
    if (characters.includes(sql.charAt(at))) return true;
  }
  return false;
}

/** Why another server may cut the same text differently; bits of `Lexer.doubt`. */
export const doubts = { backslash: 1, nul: 2, comment: 4, dollar: 8, bracket: 16 } as const;

/** How the session reads a backslash in '…' and in "…". NO_BACKSLASH_ESCAPES turns both off, ANSI_QUOTES the second. */
export type Escapes = { readonly single: boolean; readonly double: boolean };
/** How a session reads backslashes unless its sql_mode says otherwise. */
export const defaultEscapes: Escapes = { single: true, double: true };

/** After this many characters of a literal, and after each one that matters, the rest is searched with indexOf. */
const shortLiteral = 64;

/** The doubts of a lexer so far. */
export type LexerState = Readonly<Pick<Lexer, 'doubt' | 'unterminated'>>;

/** Walks over one SQL text: call `next()` until it returns `end`; never throws. */
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
  /** Positions of the next backslash and NUL, as far as the text has been searched. */
  #backslashAt = -1;
  #nulAt = -1;

  constructor(sql: string, escapes: Escapes = defaultEscapes) {
    this.#sql = sql;
    this.#escapes = escapes;
  }

  /** Moves to the next token that is neither space nor ordinary comment, and returns its kind. */
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
        if (after < 0) return this.#operator(code, at);
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

  /** MariaDB's sql_mode MSSQL quotes names with brackets. Otherwise no statement has one. */
  #operator(code: number, at: number): number {
    if (code === 0x5b) this.doubt |= doubts.bracket;
    return this.#settle(tokenKinds.operator, at + 1);
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

  /** A colon directly after a name, a literal or another colon (label:LOOP, a::b) starts no placeholder. */
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
    let quoteAt = -1;
    let searchFrom = from + shortLiteral;
    for (let at = from + 1; at < sql.length; at += 1) {
      if (at > searchFrom) {
        // Each character is searched once: a search to the end of the text for each backslash took 4 s for a literal of 1 MiB.
        if (quoteAt < at) quoteAt = find(sql, String.fromCharCode(quote), at);
        at = Math.min(quoteAt, this.#nextSpecial(quote, at));
        searchFrom = at + shortLiteral;
      }
      const code = sql.charCodeAt(at);
      if (code === quote) {
        if (sql.charCodeAt(at + 1) !== quote) return this.#settle(kind, at + 1);
        at += 1;
      } else if (code === 0x5c && kind === tokenKinds.string) {
        // Both readings agree until a backslash precedes the quote itself.
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

  /** The next backslash, or NUL if that matters. Character by character, a literal of 15 MB took 60 ms. */
  #nextSpecial(quote: number, from: number): number {
    const sql = this.#sql;
    if (this.#backslashAt < from) this.#backslashAt = find(sql, '\\', from);
    if (quote === 0x27) return this.#backslashAt;
    if (this.#nulAt < from) this.#nulAt = find(sql, '\0', from);
    return Math.min(this.#backslashAt, this.#nulAt);
  }

  /** The position after the comment that starts here, or -1; `kind` says whether it is executable. */
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

/** The position of the next such character; the end of the text if there is none. */
function find(sql: string, character: string, from: number): number {
  const at = sql.indexOf(character, from);
  return at < 0 ? sql.length : at;
}

/**
 * The reason why no value may be put into a text, for people; null: there is no doubt about its tokens.
 * @param lexer has read the text to its end
 * @param cleared doubts that do not apply to the session
 */
export function describeDoubt(lexer: LexerState, cleared = 0): string | null {
  if (lexer.unterminated) {
    return 'a literal, quoted name or comment in the statement is not closed';
  }
  const doubt = lexer.doubt & ~cleared;
  if (doubt === 0) return null;
  if (doubt & doubts.backslash) {
    return 'a backslash before a quote in a literal depends on sql_mode; double the quote, or make the literal a parameter';
  }
  if (doubt & doubts.nul) return 'the statement contains a NUL character outside of a literal';
  if (doubt & doubts.comment) {
    return 'an executable comment or hint with quotes, placeholders or other marks cannot be used with PARAMS';
  }
  if (doubt & doubts.bracket) return 'a [ outside of a literal quotes a name to some servers';
  return 'a name of the form $…$ is a string to some servers and cannot be used with PARAMS';
}

// A statement's shape for the log: its text with every literal as `?`, lists of them as one, comments dropped.
// It must not contain a literal: where servers may cut the text differently, the digest ends.
import { Lexer, tokenKinds } from './lexer.ts';

const maxDigestCharacters = 1024;
/** The rest of a longer text is not read: its shape is known by then. */
export const maxTextCharacters = 64 * 1024;

/** Words that carry a string: charset introducers, national, hexadecimal and bit strings. */
const charset = /^_\w+$/;
const stringPrefix = /^[nxb]$/i;
const constant = /^(?:null|true|false|default)$/i;

/** The digest of one statement or several: at most 1 KiB; `…` at its end stands for the rest. */
export function digest(sql: string): string {
  const lexer = new Lexer(sql.length > maxTextCharacters ? sql.slice(0, maxTextCharacters) : sql);
  const out = new Shape();
  for (;;) {
    const before = lexer.end;
    lexer.next();
    if (lexer.doubt !== 0 || lexer.unterminated) return out.cut();
    if (lexer.kind === tokenKinds.end)
      return sql.length > maxTextCharacters ? out.cut() : out.text();
    out.add(lexer.kind, sql.slice(lexer.start, lexer.end), lexer.start === before);
    if (out.length > maxDigestCharacters) return out.cut();
  }
}

type Piece = { kind: number; text: string; touching: boolean };

const placeholder = '?';
const isLiteral = (piece: Piece | undefined) => piece?.text === placeholder;
const isSign = (piece: Piece | undefined) => piece?.text === '-' || piece?.text === '+';

/** The pieces of a digest so far; a new piece may remove earlier ones. */
class Shape {
  readonly #pieces: Piece[] = [];
  length = 0;

  add(kind: number, text: string, touching: boolean): void {
    if (kind === tokenKinds.number || kind === tokenKinds.string) this.#addLiteral(kind, touching);
    else if (kind === tokenKinds.word && constant.test(text) && this.#isListed())
      this.#addLiteral(kind, false);
    else if (kind === tokenKinds.word && touching && this.#isFraction()) this.#pop(1);
    else if (kind === tokenKinds.executableComment)
      this.#push({ kind: tokenKinds.operator, text: '/*!*/', touching });
    else this.#push({ kind, text, touching });
    if (kind === tokenKinds.close) this.#foldRows();
  }

  text(): string {
    let text = '';
    let before: Piece | undefined;
    for (const piece of this.#pieces) {
      text += before === undefined || joins(before, piece) ? piece.text : ` ${piece.text}`;
      before = piece;
    }
    return text;
  }

  cut(): string {
    return `${this.text().slice(0, maxDigestCharacters)}…`;
  }

  #at(back: number): Piece | undefined {
    return this.#pieces.at(-back);
  }

  #push(piece: Piece): void {
    this.#pieces.push(piece);
    this.length += piece.text.length + 1;
  }

  #pop(count: number): void {
    for (let index = 0; index < count; index += 1) {
      this.length -= (this.#pieces.pop()?.text.length ?? -1) + 1;
    }
  }

  /** Whether the next piece is in a list, or begins one. */
  #isListed(): boolean {
    return this.#at(1)?.kind === tokenKinds.open || this.#at(1)?.text === ',';
  }

  #addLiteral(kind: number, touching: boolean): void {
    const last = this.#at(1);
    if (kind === tokenKinds.string) this.#dropIntroducers(touching);
    else if (touching && last?.kind === tokenKinds.dot && !this.#isQualified()) this.#pop(1);
    else if (kind === tokenKinds.number && isSign(last) && this.#isUnary()) this.#pop(1);
    if (isLiteral(this.#at(1))) return;
    if (this.#at(1)?.text === ',' && isLiteral(this.#at(2))) this.#pop(1);
    else this.#push({ kind: tokenKinds.number, text: placeholder, touching });
  }

  /** Introducers and prefixes belong to the string: N'…', _latin1 '…', _utf8mb4 X'…'. */
  #dropIntroducers(touching: boolean): void {
    if (touching && this.#endsInWord(stringPrefix)) this.#pop(1);
    if (this.#endsInWord(charset)) this.#pop(1);
  }

  #endsInWord(pattern: RegExp): boolean {
    const last = this.#at(1);
    return last?.kind === tokenKinds.word && pattern.test(last.text);
  }

  /** After the dot of a name (t.1a), not of a number (.5). */
  #isQualified(): boolean {
    const owner = this.#at(2);
    return this.#touches() && owner !== undefined && isName(owner);
  }

  /** After the dot of a number: in 1.e5 the exponent is a word. */
  #isFraction(): boolean {
    return this.#at(1)?.kind === tokenKinds.dot && this.#touches() && isLiteral(this.#at(2));
  }

  /** A sign after an operator, a comma or an opening parenthesis, or in an exponent (1e-5), belongs to the number. */
  #isUnary(): boolean {
    const before = this.#at(2);
    if (before === undefined) return true;
    return (
      before.kind === tokenKinds.open ||
      before.kind === tokenKinds.operator ||
      (isLiteral(before) && this.#touches())
    );
  }

  #touches(): boolean {
    return this.#at(1)?.touching === true;
  }

  /** The rows of (?), (?) have one shape: one is enough. */
  #foldRows(): void {
    const isRow = (back: number) =>
      this.#at(back)?.kind === tokenKinds.close &&
      isLiteral(this.#at(back + 1)) &&
      this.#at(back + 2)?.kind === tokenKinds.open;
    if (isRow(1) && this.#at(4)?.text === ',' && isRow(5)) this.#pop(4);
  }
}

/** Whether there is no blank between two pieces. */
function joins(left: Piece, right: Piece): boolean {
  if (left.kind === tokenKinds.dot || right.kind === tokenKinds.dot) return right.touching;
  if (
    left.kind === tokenKinds.open ||
    right.kind === tokenKinds.close ||
    right.kind === tokenKinds.semicolon
  )
    return true;
  if (left.kind === tokenKinds.userAt || left.kind === tokenKinds.systemAt || right.text === ',')
    return true;
  if (right.kind === tokenKinds.open || right.kind === tokenKinds.userAt)
    return right.touching && isName(left);
  return (
    left.kind === tokenKinds.operator &&
    right.kind === tokenKinds.operator &&
    left.text !== ',' &&
    right.touching
  );
}

function isName({ kind }: Piece): boolean {
  return kind === tokenKinds.word || kind === tokenKinds.quotedName;
}

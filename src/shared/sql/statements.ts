// Cuts a text into the statements the server will run, and says which result belongs to which.
// Must not know what a statement does, beyond its first keyword.
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { createBlocks } from './blocks.ts';
import { isSpaceCode } from './characters.ts';
import { defaultEscapes, type Escapes, Lexer } from './lexer.ts';
import { tokenKinds } from './tokens.ts';

/** One piece between semicolons, as positions in the text (`end` is exclusive, before the semicolon). */
export type Statement = {
  readonly start: number;
  readonly end: number;
  /** First keyword in upper case; '' for a piece of comments only. */
  readonly verb: string;
  /** CALL or a compound statement: result sets, as many as it likes, then one OK of its own. */
  readonly isCall: boolean;
};

/**
 * The statements of `sql` in order. As on the server, spaces and semicolons at the very end are
 * nothing, while a comment behind a semicolon, or nothing between two, is a statement. Bodies of
 * routines and compound statements are one statement.
 */
export function scanStatements(
  sql: string,
  escapes: Escapes = defaultEscapes,
): readonly Statement[] {
  const scan = new Scan(sql, escapes, true);
  while (scan.readOn(Number.POSITIVE_INFINITY));
  if (scan.statements !== null) return scan.statements;
  const again = new Scan(sql, escapes, false);
  while (again.readOn(Number.POSITIVE_INFINITY));
  return again.statements ?? [];
}

/** The same in pieces, as a session reads it that has no special sql_mode. */
export function* scanInPieces(sql: string): Pieces<readonly Statement[]> {
  const scan = new Scan(sql, defaultEscapes, true);
  while (scan.readOn(stepsInPiece)) yield;
  if (scan.statements !== null) return scan.statements;
  const again = new Scan(sql, defaultEscapes, false);
  while (again.readOn(stepsInPiece)) yield;
  return again.statements ?? [];
}

/** One reading of a text, which may be interrupted. */
class Scan {
  /** Once it is over; null: a block that never ends is no block we understood, and every semicolon counts. */
  statements: Statement[] | null = [];
  readonly #sql: string;
  readonly #limit: number;
  readonly #lexer: Lexer;
  /** Null: blocks are not looked for. */
  readonly #blocks: ReturnType<typeof createBlocks> | null;
  #from = 0;
  #verb = '';

  constructor(sql: string, escapes: Escapes, withBlocks: boolean) {
    this.#sql = sql;
    this.#limit = endOfText(sql);
    this.#lexer = new Lexer(sql, escapes);
    this.#blocks = withBlocks ? createBlocks(sql) : null;
  }

  /** Reads on by so many tokens at most; returns whether there are more. */
  readOn(mostTokens: number): boolean {
    const lexer = this.#lexer;
    for (let left = mostTokens; left > 0; left -= 1) {
      const kind = lexer.next();
      if (kind === tokenKinds.end || lexer.start >= this.#limit) {
        this.#finish();
        return false;
      }
      this.#see(kind);
    }
    return true;
  }

  #see(kind: number): void {
    const { start, end } = this.#lexer;
    const blocks = this.#blocks;
    if (kind === tokenKinds.word && this.#verb === '')
      this.#verb = this.#sql.slice(start, end).toUpperCase();
    blocks?.see(kind, start, end);
    if (kind !== tokenKinds.semicolon || blocks?.isOpen() === true) return;
    this.#add(start);
    this.#from = end;
    this.#verb = '';
    blocks?.reset();
  }

  #finish(): void {
    if (this.#blocks?.isOpen() === true) this.statements = null;
    else if (this.#from < this.#limit) this.#add(this.#limit);
  }

  #add(end: number): void {
    const isCompound = this.#blocks?.isCompound() === true;
    this.statements?.push(describe(this.#sql, this.#from, end, this.#verb, isCompound));
  }
}

function describe(
  sql: string,
  from: number,
  end: number,
  verb: string,
  compound: boolean,
): Statement {
  let start = from;
  while (start < end && isSpaceCode(sql.charCodeAt(start))) start += 1;
  return { start, end, verb, isCall: compound || verb === 'CALL' };
}

/** The server takes spaces and semicolons off the end before it looks at anything. */
function endOfText(sql: string): number {
  let end = sql.length;
  while (end > 0) {
    const code = sql.charCodeAt(end - 1);
    if (code !== 0x3b && !isSpaceCode(code)) break;
    end -= 1;
  }
  return end;
}

/** Tells the statement of each result as the results come in. */
export type ResultMap = {
  /** Index of the statement that the next result (a result set, or an OK) belongs to; an error counts as a result. */
  readonly next: (isResultSet: boolean) => number;
};

/** Creates the map for the results of one text. */
export function createResultMap(statements: readonly Statement[]): ResultMap {
  let index = 0;
  return {
    next: (isResultSet) => {
      const at = Math.min(index, Math.max(statements.length - 1, 0));
      const stays = isResultSet && statements[at]?.isCall === true;
      if (!stays) index += 1;
      return at;
    },
  };
}

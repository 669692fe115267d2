// Cuts a text into the statements the server will run, and says which result belongs to which.
// Must not know what a statement does, beyond its first keyword.
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
  const limit = endOfText(sql);
  const found = scan(sql, limit, escapes, true);
  // A block that never ends is no block we understood: every semicolon counts.
  return found ?? scan(sql, limit, escapes, false) ?? [];
}

function scan(
  sql: string,
  limit: number,
  escapes: Escapes,
  withBlocks: boolean,
): Statement[] | null {
  const statements: Statement[] = [];
  const lexer = new Lexer(sql, escapes);
  const blocks = createBlocks(sql);
  let from = 0;
  let verb = '';
  for (
    let kind = lexer.next();
    kind !== tokenKinds.end && lexer.start < limit;
    kind = lexer.next()
  ) {
    if (kind === tokenKinds.word && verb === '')
      verb = sql.slice(lexer.start, lexer.end).toUpperCase();
    if (withBlocks) blocks.see(kind, lexer.start, lexer.end);
    if (kind !== tokenKinds.semicolon || (withBlocks && blocks.isOpen())) continue;
    statements.push(describe(sql, from, lexer.start, verb, withBlocks && blocks.isCompound()));
    from = lexer.end;
    verb = '';
    blocks.reset();
  }
  if (withBlocks && blocks.isOpen()) return null;
  if (from < limit)
    statements.push(describe(sql, from, limit, verb, withBlocks && blocks.isCompound()));
  return statements;
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

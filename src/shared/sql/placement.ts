// Separates a literal from its neighbours where it replaces a placeholder.
import { isSpaceCode, Lexer, tokenKinds } from './lexer.ts';

/** Texts directly before and after the literal. */
export type Placement = { readonly before: string; readonly after: string };

/**
 * Separates a literal from a word, quote or operator that it could merge with.
 * @param start the first position of the placeholder @param end after its last one
 */
export function placeLiteral(
  sql: string,
  start: number,
  end: number,
  isNegative: boolean,
): Placement {
  const previous = start > 0 ? sql.charCodeAt(start - 1) : 0x20;
  // After a minus neither a space nor a minus may follow: both could make `--`, a comment.
  const isAfterMinus = previous === 0x2d;
  const isEnclosed = isAfterMinus || (isNegative && bindsTighterThanMinus(sql, end));
  const space = isAfterMinus || separates(previous) ? '' : ' ';
  const isMerging = end < sql.length && !separates(sql.charCodeAt(end));
  return {
    before: isEnclosed ? `${space}(` : space,
    after: `${isEnclosed ? ')' : ''}${isMerging ? ' ' : ''}`,
  };
}

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

/**
 * Whether the server would apply what follows at `at` to the digits of a negative number and not to its value: COLLATE, which may also be
 * in an executable comment.
 */
function bindsTighterThanMinus(sql: string, at: number): boolean {
  const ahead = new Lexer(sql);
  ahead.end = at;
  const kind = ahead.next();
  if (kind === tokenKinds.executableComment) return true;
  return kind === tokenKinds.word && sql.slice(ahead.start, ahead.end).toUpperCase() === 'COLLATE';
}

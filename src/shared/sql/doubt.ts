// Says why no value can be put safely into a text: another server or sql_mode would cut it elsewhere.
// Must not know the values.
import { doubts, type Lexer } from './lexer.ts';

/**
 * The reason in words for people, or null when the text, read to its end by `lexer`, leaves no doubt.
 * @param cleared doubts that are none where the text goes
 */
export function describeDoubt(lexer: Lexer, cleared = 0): string | null {
  if (lexer.unterminated) {
    return 'a literal, quoted name or comment in the statement is not closed';
  }
  const doubt = lexer.doubt & ~cleared;
  if (doubt === 0) return null;
  if (doubt & doubts.backslash) {
    return 'a backslash before a quote in a literal depends on sql_mode; double the quote, or make the literal a parameter';
  }
  if (doubt & doubts.nul) return 'the statement holds a NUL character outside of a literal';
  if (doubt & doubts.comment) {
    return 'an executable comment or hint with quotes, placeholders or marks in it cannot go with PARAMS';
  }
  return 'a name of the form $…$ is a string to some servers and cannot go with PARAMS';
}

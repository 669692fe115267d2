// Whether a text ends other sessions or their statements by KILL.
import type { Analysis } from './analyse.ts';
import { defaultEscapes, doubts, type Escapes, Lexer, tokenKinds } from './lexer.ts';
import { toUpperAscii, words } from './vocabulary.ts';

/** KILL is a reserved word of MySQL and MariaDB: without quotes it is no name, except behind a dot. */
const killing = /kill/i;
/** The same in a hexadecimal literal, which the value of a parameter becomes. */
const killingInHex = /[46]b[46]9[46]c[46]c/i;
/** Statements that run a text which may stand in a literal. */
const preparing = words('PREPARE EXECUTE');

/** Other readings of a backslash: by these, words of a literal stand outside of it. */
const otherEscapes: readonly Escapes[] = [
  { single: true, double: false },
  { single: false, double: false },
];
/** After these a statement may begin. */
const openingKinds: ReadonlySet<number> = new Set([
  tokenKinds.end,
  tokenKinds.semicolon,
  tokenKinds.colon,
  tokenKinds.open,
]);
const longestWord = 'PREPARE'.length;
const openingWords = words('ATOMIC BEGIN DO ELSE LOOP REPEAT THEN');

/**
 * Whether a text may contain a KILL, alone, behind another statement, in a block, in an executable comment, or in the literal or the
 * parameter of a PREPARE or EXECUTE IMMEDIATE, under any reading of its backslashes. A statement that is put together while it runs is not
 * recognised.
 */
export function mayKill({ sql, readings }: Pick<Analysis, 'sql' | 'readings'>): boolean {
  if (!killing.test(sql) && !killingInHex.test(sql)) return false;
  if (hasKill(sql, defaultEscapes, false)) return true;
  return readings.length > 1 && otherEscapes.some((escapes) => hasKill(sql, escapes, true));
}

/** @param atBeginning whether the word counts only where a statement may begin: elsewhere it is most likely a part of a literal */
function hasKill(sql: string, escapes: Escapes, atBeginning: boolean): boolean {
  const lexer = new Lexer(sql, escapes);
  let before: number = tokenKinds.end;
  let wordBefore = '';
  let isFound = false;
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    const { start, end } = lexer;
    const isShort = kind === tokenKinds.word && end - start <= longestWord;
    const word = isShort ? toUpperAscii(sql.slice(start, end)) : '';
    const isName = before === tokenKinds.dot || before === tokenKinds.userAt;
    const mayBegin = openingKinds.has(before) || openingWords.has(wordBefore);
    isFound ||= kind === tokenKinds.executableComment && killing.test(sql.slice(start, end));
    isFound ||= word === 'KILL' && !isName && (mayBegin || !atBeginning);
    // Their text may be a literal anywhere before them, in a variable.
    isFound ||= preparing.has(word) && !isName && !atBeginning;
    before = kind;
    wordBefore = word;
  }
  // A session with this reading refuses it.
  if (atBeginning && lexer.unterminated) return false;
  // Another server may cut the text elsewhere.
  return isFound || (lexer.doubt & ~doubts.backslash) !== 0;
}

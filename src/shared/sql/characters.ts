// What a single character is to MySQL's lexer.
// Must not know what comes before or after it.
import { tokenKinds } from './tokens.ts';

/** What a character may be beyond the kinds of token that it makes by itself. */
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

/** The class of a UTF-16 code unit; whatever is not ASCII belongs to words, as in a utf8mb4 session. */
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

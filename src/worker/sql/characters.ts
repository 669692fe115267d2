// What a single character is to MySQL's lexer.
// Must not know what comes before or after it.
import {
  CLOSE,
  COLON,
  DOT,
  OPEN,
  OPERATOR,
  PLACEHOLDER,
  QUOTED_NAME,
  SEMICOLON,
  STRING,
  USER_AT,
} from './tokens.ts';

// Beyond the kinds of token, which a character may be by itself.
export const SPACE_CLASS = 100;
export const LETTER_CLASS = 101;
export const DIGIT_CLASS = 102;
const CLASSES = classifyCharacters();

function classifyCharacters(): Uint8Array {
  const classes = new Uint8Array(128).fill(OPERATOR);
  // MySQL's own idea of space: tab, line feed, vertical tab, form feed, carriage return, blank.
  for (const code of [9, 10, 11, 12, 13, 32]) classes[code] = SPACE_CLASS;
  for (let code = 0x30; code <= 0x39; code++) classes[code] = DIGIT_CLASS;
  for (let code = 0x41; code <= 0x5a; code++) classes[code] = LETTER_CLASS;
  for (let code = 0x61; code <= 0x7a; code++) classes[code] = LETTER_CLASS;
  classes[0x24] = LETTER_CLASS;
  classes[0x5f] = LETTER_CLASS;
  classes[0x22] = STRING;
  classes[0x27] = STRING;
  classes[0x60] = QUOTED_NAME;
  classes[0x28] = OPEN;
  classes[0x29] = CLOSE;
  classes[0x2e] = DOT;
  classes[0x3b] = SEMICOLON;
  classes[0x3a] = COLON;
  classes[0x3f] = PLACEHOLDER;
  classes[0x40] = USER_AT;
  return classes;
}

/** The class of a UTF-16 code unit; whatever is not ASCII belongs to words, as in a utf8mb4 session. */
export function classOf(code: number): number {
  return code < 128 ? (CLASSES[code] as number) : LETTER_CLASS;
}

/** True for a character that would merge with a word written directly before or after it. */
export function isWordCode(code: number): boolean {
  const found = classOf(code);
  return found === LETTER_CLASS || found === DIGIT_CLASS;
}

/** True for what MySQL skips between tokens; other Unicode spaces are word characters to it. */
export function isSpaceCode(code: number): boolean {
  return code < 128 && CLASSES[code] === SPACE_CLASS;
}
